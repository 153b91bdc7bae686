#!/bin/sh
# A Slurm of its own on this machine: one controller and two nodes, each in its own process namespace, so that one can fail.
#   interop/slurm.sh up DIRECTORY             starts it; then `export SLURM_CONF=DIRECTORY/slurm.conf`
#   interop/slurm.sh fail DIRECTORY NODE      ends node1 or node2 with everything that runs on it, as a power cut does
#   interop/slurm.sh start DIRECTORY NODE     starts it again
#   interop/slurm.sh down DIRECTORY           ends it all
# Needs root, Debian's packages (interop/setup.sh long) and a DIRECTORY whose path has no blanks. It touches neither /etc/slurm nor
# /etc/munge, and ends only what it has started. It listens on all addresses of its network namespace, so give it one of its own
# (`unshare --net`), with `lo` up and some other address, without which Slurm finds none at all. Elsewhere whoever has not the key in
# DIRECTORY is refused.
set -eu
PATH=$PATH:/usr/sbin
usage() {
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[ $# -ge 2 ] || usage
case $2 in *[!A-Za-z0-9/._-]*) echo "slurm.sh: $2: such a name cannot stand in slurm.conf" >&2; exit 2 ;; esac
[ "$1" = up ] && mkdir -p "$2"
dir=$(cd "$2" && pwd)
export SLURM_CONF="$dir/slurm.conf"

# Half a minute at most.
wait_for() {
    until=$(($(date +%s) + 30))
    until "$@"; do
        if [ "$(date +%s)" -gt "$until" ]; then
            echo "slurm.sh: it does not start ($*):" >&2
            for log in "$dir"/*.log; do tail -n 5 "$log" >&2; done
            return 1
        fi
        sleep 0.1
    done
}

# started NAME COMMAND…: in the background, in a session of its own; `pids/NAME` says which process it is.
started() {
    name=$1
    shift
    setsid "$@" </dev/null >>"$dir/$name.log" 2>&1 &
    echo $! > "$dir/pids/$name"
}

# ended SIGNAL NAME: and waits until it is gone. Only if that number is still a process that was started for this directory.
ended() {
    pid=$(cat "$dir/pids/$2" 2>/dev/null) || return 0
    rm -f "$dir/pids/$2"
    tr '\0' '\n' 2>/dev/null < "/proc/$pid/environ" | grep -qxF "SLURM_CONF=$SLURM_CONF" || return 0
    kill "-$1" "$pid" 2>/dev/null || return 0
    tries=0
    while kill -0 "$pid" 2>/dev/null && ! grep -q '^State:	Z' "/proc/$pid/status" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" = 100 ] && kill -KILL "$pid"
        sleep 0.1
    done
}

# The node's slurmd is the first process of a namespace: the kernel ends all others with it.
node() { started "$1" unshare --pid --fork --kill-child=KILL --mount-proc slurmd -D -N "$1"; }
idle() { [ "$(timeout 2 sinfo --noheader --Node --nodes="$1" --format=%t 2>/dev/null)" = idle ]; }

up() {
    for program in munged slurmctld slurmd sbatch; do
        command -v "$program" >/dev/null || { echo "slurm.sh: $program is missing: interop/setup.sh long" >&2; exit 3; }
    done
    [ -e "$dir/pids" ] && { echo "slurm.sh: $dir is in use: slurm.sh down $dir" >&2; exit 1; }
    mkdir -p "$dir/pids" "$dir/state" "$dir/node1" "$dir/node2"
    # munged wants to own its directory and its key alone.
    chmod 755 "$dir"
    (umask 377 && dd if=/dev/urandom of="$dir/key" bs=128 count=1 status=none)
    # A node counts as lost after six seconds, and what ran there runs again ten seconds later: in earnest these are minutes.
    cat > "$SLURM_CONF" <<END
ClusterName=airtcp
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=16817
AuthType=auth/munge
AuthInfo=socket=$dir/munge,cred_expire=10
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmdTimeout=6
KillWait=2
MinJobAge=300
JobRequeue=1
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=1,sched_interval=2
NodeName=node1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=16818 CPUs=1 RealMemory=4000 State=UNKNOWN
NodeName=node2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=16819 CPUs=1 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
END
    started munged munged --foreground --force --key-file="$dir/key" --socket="$dir/munge" --pid-file="$dir/munged.pid" \
        --seed-file="$dir/seed" --log-file="$dir/munged.log"
    wait_for [ -S "$dir/munge" ]
    started slurmctld slurmctld -D
    node node1
    node node2
    wait_for idle node1
    wait_for idle node2
}

# A node has nobody to say goodbye to.
down() {
    for name in node1 node2; do ended KILL "$name"; done
    for name in slurmctld munged; do ended TERM "$name"; done
    rm -rf "$dir/pids" "$dir/state" "$dir/node1" "$dir/node2" "$dir/key"
}

case $1 in
up) up || { down; exit 1; } ;;
down) down ;;
fail) [ $# = 3 ] || usage; ended KILL "$3" ;;
start) [ $# = 3 ] || usage; node "$3" ;;
*) usage ;;
esac

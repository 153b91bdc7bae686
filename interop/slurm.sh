#!/bin/sh
# A private Slurm on this machine: one controller and two nodes, which can be made to fail.
#   interop/slurm.sh up DIRECTORY             starts it; then `export SLURM_CONF=DIRECTORY/slurm.conf`
#   interop/slurm.sh fail DIRECTORY NODE      kills all processes of node1 or node2, like a power failure
#   interop/slurm.sh start DIRECTORY NODE     restarts the node
#   interop/slurm.sh down DIRECTORY           stops everything
# Needs root, the Debian packages of `interop/setup.sh long`, and a DIRECTORY whose path has no spaces.
# Does not touch /etc/slurm or /etc/munge, and stops only processes that it started. The daemons listen on
# all addresses of their network namespace, so run it in a separate one (`unshare --net`) with `lo` up and
# one more address: with `lo` alone, Slurm finds no address. In any other network namespace, clients that
# do not have the key in DIRECTORY are refused.
set -eu
PATH=$PATH:/usr/sbin
usage() {
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[ $# -ge 2 ] || usage
case $2 in *[!A-Za-z0-9/._-]*) echo "slurm.sh: $2: unsupported characters for slurm.conf; use letters, digits and . _ / -" >&2; exit 2 ;; esac
[ "$1" = up ] && mkdir -p "$2"
dir=$(cd "$2" && pwd)
export SLURM_CONF="$dir/slurm.conf"

# wait_for COMMAND…: waits until COMMAND succeeds, for at most half a minute.
wait_for() {
    until=$(($(date +%s) + 30))
    until "$@"; do
        if [ "$(date +%s)" -gt "$until" ]; then
            echo "slurm.sh: Slurm does not start (waited for: $*):" >&2
            for log in "$dir"/*.log; do tail -n 5 "$log" >&2; done
            return 1
        fi
        sleep 0.1
    done
}

# started NAME COMMAND…: runs COMMAND in the background, in its own session; `pids/NAME` has its process ID.
started() {
    name=$1
    shift
    setsid "$@" </dev/null >>"$dir/$name.log" 2>&1 &
    echo $! > "$dir/pids/$name"
}

# ended SIGNAL NAME: sends SIGNAL and waits until the process is gone. Does nothing unless the process ID
# still belongs to a process that was started for this directory.
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

# The node's slurmd is the first process of a PID namespace, so its end kills all other processes of the node.
# Each node has its own namespace and can fail alone.
node() { started "$1" unshare --pid --fork --kill-child=KILL --mount-proc slurmd -D -N "$1"; }
idle() { [ "$(timeout 2 sinfo --noheader --Node --nodes="$1" --format=%t 2>/dev/null)" = idle ]; }

up() {
    for program in munged slurmctld slurmd sbatch; do
        command -v "$program" >/dev/null || { echo "slurm.sh: $program is missing: interop/setup.sh long" >&2; exit 3; }
    done
    [ -e "$dir/pids" ] && { echo "slurm.sh: $dir is in use: slurm.sh down $dir" >&2; exit 1; }
    mkdir -p "$dir/pids" "$dir/state" "$dir/node1" "$dir/node2"
    # munged requires that no other user can write to its directory or read its key.
    chmod 755 "$dir"
    (umask 377 && dd if=/dev/urandom of="$dir/key" bs=128 count=1 status=none)
    # A node counts as lost after 6 s, and its jobs run again 10 s later. In production these are minutes.
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

# The nodes are killed, because they need no orderly shutdown.
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

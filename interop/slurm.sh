#!/bin/sh
# Runs a command with a Slurm of its own on this machine: one controller, one node, gone when the command ends.
#   interop/slurm.sh DIRECTORY COMMAND…
# Needs root and Debian's packages: apt-get install slurmctld slurmd slurm-client munge
set -eu
dir=$1
shift
PATH=$PATH:/usr/sbin
for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || {
        echo "slurm.sh: $program is missing: apt-get install slurmctld slurmd slurm-client munge" >&2
        exit 3
    }
done
mkdir -p "$dir/state" "$dir/spool"
# munged wants to own its directory and its key alone.
chmod 755 "$dir"
dd if=/dev/urandom of="$dir/key" bs=128 count=1 status=none
chmod 400 "$dir/key"
host=$(hostname -s)
cat > "$dir/slurm.conf" <<END
ClusterName=airtcp
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$dir/munge
CryptoType=crypto/munge
SlurmUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$dir/slurm.conf"
pids=
trap 'kill $pids 2>/dev/null || :; wait' EXIT
trap 'exit 130' INT TERM
munged --foreground --force --key-file="$dir/key" --socket="$dir/munge" --pid-file="$dir/munged.pid" \
    --seed-file="$dir/seed" >"$dir/munged.log" 2>&1 &
pids="$pids $!"

ready() { [ -S "$dir/munge" ]; }
idle() { sinfo --noheader --format=%t 2>/dev/null | grep -q '^idle$'; }
# Half a minute at most.
wait_for() {
    tries=0
    until "$1"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ]; then
            echo "slurm.sh: it does not start:" >&2
            tail -n 5 "$dir"/*.log >&2
            exit 1
        fi
        sleep 0.1
    done
}

wait_for ready
slurmctld -D >/dev/null 2>&1 &
pids="$pids $!"
slurmd -D >/dev/null 2>&1 &
pids="$pids $!"
wait_for idle
"$@"

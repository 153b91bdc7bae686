//! `airtcp sweep` on several machines gives the same bytes as a single process, even if machines fail.

use std::fs;

use airtcp_testkit::machine::{Ended, TempDir};
use serde_json::Value;

use super::helpers::{SWEEP, good, merged, refused, root, rows_by_run, shell, uninterrupted};

#[test]
fn each_array_job_runs_its_shard() {
    let dir = TempDir::new("sweep");
    // The name contains characters that a shell would interpret.
    let file = dir.write("it's one.toml", SWEEP);
    let script = good(&["sweep", "slurm", &file, "--tasks", "3", "--cpus", "2"]);
    for line in ["--array=1-3", "--cpus-per-task=2", "--job-name=it_s_one", "--requeue", "--open-mode=append"]
    {
        assert!(script.stdout.contains(&format!("#SBATCH {line}\n")), "{}", script.stdout);
    }
    submit(&dir, &script.stdout);
    assert!(merged(&dir.path("it's one.results")) == uninterrupted(&dir, &file));
}

/// Runs the jobs as `sbatch` would, but one after the other.
fn submit(dir: &TempDir, script: &str) {
    let script = dir.write("job.sh", script);
    let stand_ins = root("tests/docs/stand-ins");
    let arguments = [stand_ins.to_str().unwrap(), &script];
    let ended = Ended::of(shell("PATH=$1:$PATH; sbatch --wait \"$2\"", &arguments).output().unwrap());
    assert_eq!((ended.code, &*ended.stdout), (0, "Submitted batch job 1\n"), "{}", ended.stderr);
}

#[test]
fn resubmitted_array_runs_only_missing_runs() {
    let dir = TempDir::new("sweep");
    let file = dir.write("s.toml", SWEEP);
    for shard in ["1/4", "3/4"] {
        good(&["sweep", "run", &file, "--quiet", "--shard", shard]);
    }
    let script = good(&["sweep", "slurm", &file, "--tasks", "5"]).stdout;
    submit(&dir, &script);
    submit(&dir, &script);
    let store = dir.path("s.results");
    assert!(rows_by_run(&store).values().all(|count| *count == 1));
    assert!(merged(&store) == uninterrupted(&dir, &file));
}

#[test]
fn status_reports_sweep_progress() {
    let dir = TempDir::new("sweep");
    let file = dir.write("s.toml", SWEEP);
    let store = dir.path("s.results");
    let status = |sweep: &str| good(&["sweep", "status", sweep, "--parts"]).stdout;
    assert!(status(&file).contains("s.results: 0 of 12 runs have results, 0 %\nnot running\n"));
    let stderr = refused(&["sweep", "status", &store], 2);
    assert!(stderr.contains("is not a results directory"), "{stderr}");
    good(&["sweep", "run", &file, "--quiet", "--shard", "1/4", "--jobs", "1"]);
    let text = status(&store);
    assert_eq!(text, status(&file));
    for words in [
        "s.results: 3 of 12 runs have results, 25 %\n",
        "missing runs: 1-3,5-7,9-11\n",
        " 1/4           3 of 3  ",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let json = good(&["sweep", "status", &file, &store, "--json"]).lines;
    assert_eq!(json.len(), 2);
    assert_eq!(json[0]["missing"], serde_json::json!([[1, 3], [5, 7], [9, 11]]));
    assert_eq!(json[0]["parts"][0]["state"], "done");
    // Simulate a part whose process was killed: first just now, then long ago.
    let rows = format!("{store}/rows-1-of-4.0001.jsonl");
    let part = format!("{store}/rows-2-of-2.0001.jsonl");
    good(&["sweep", "run", &file, "--quiet", "--shard", "2/4", "--jobs", "1"]);
    fs::rename(format!("{store}/rows-2-of-4.0001.jsonl"), &part).unwrap();
    let state = |sweep: &str| good(&["sweep", "status", sweep, "--json"]).lines.remove(0)["parts"][0].clone();
    assert_eq!((&state(&store)["state"], &state(&store)["done"]), (&"filling".into(), &3.into()));
    let hour = std::time::Duration::from_secs(3600);
    let before = fs::metadata(&part).unwrap().modified().unwrap() - hour;
    fs::File::options().append(true).open(&part).unwrap().set_modified(before).unwrap();
    assert_eq!(state(&store)["state"], "stopped");
    // A sweep that was extended has more runs, but the store does not know this yet.
    fs::write(&file, SWEEP.replace("seeds = 3", "seeds = 4")).unwrap();
    assert!(status(&file).contains("6 of 16 runs") && status(&store).contains("6 of 12 runs"));
    assert!(fs::exists(rows).unwrap());
}

/// One node loses power during a job and is drained, and one job is cancelled. Then the node returns, and the
/// script is submitted again.
#[test]
#[ignore = "starts its own Slurm: sh interop/setup.sh long"]
fn slurm_completes_store_despite_lost_node() {
    assert!(nix::unistd::geteuid().is_root(), "munged and slurmctld are started as root");
    let dir = TempDir::new("sweep");
    let long = SWEEP.replace("seeds = 3", "seeds = 80").replace("30k", "1M");
    let file = dir.write("s.toml", &long);
    let script = r#"set -e
        cd "$2"
        ip link set lo up
        ip link add near type veth peer name far
        ip addr add 10.9.0.1/24 dev near
        trap 'sh "$3" down slurm' EXIT
        trap 'exit 1' TERM
        sh "$3" up slurm
        export SLURM_CONF="$PWD/slurm/slurm.conf"
        airtcp sweep slurm "$1" --tasks 8 > first.sh
        job=$(sbatch --parsable first.sh)
        scancel "${job}_8"
        rows() { { wc -l < "s.results/rows-$1-of-8.0001.jsonl"; } 2>/dev/null || echo 0; }
        until part=$(squeue --noheader --nodelist=node2 --states=running --format=%K) && [ -n "$part" ] &&
            [ "$(rows "$part")" -ge 3 ]; do sleep 0.05; done
        sh "$3" fail slurm node2
        scontrol update nodename=node2 state=drain reason=power
        airtcp sweep status "$1" --json
        while [ -n "$(squeue --noheader)" ]; do sleep 0.2; done
        scontrol --oneliner show job
        airtcp sweep status "$1" --json
        sh "$3" start slurm node2
        scontrol update nodename=node2 state=resume
        sbatch --wait first.sh
        echo "part $part""#;
    let slurm = root("interop/slurm.sh");
    let arguments = [&file, dir.to_str().unwrap(), slurm.to_str().unwrap(), script];
    let isolated = "exec timeout 240 unshare --net sh -c \"$4\" sh \"$1\" \"$2\" \"$3\"";
    let ended = Ended::of(shell(isolated, &arguments).output().unwrap());
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let [during_failure, after_failure]: [&Value; 2] =
        ended.lines.iter().collect::<Vec<_>>().try_into().unwrap();
    let done = during_failure["done"].as_u64().unwrap();
    assert!((3..320).contains(&done) && during_failure["filling"].as_u64() >= Some(1), "{during_failure}");
    // Only the job on the lost node was started twice.
    let jobs: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("JobId=")).collect();
    let part = ended.stdout.lines().find_map(|line| line.strip_prefix("part ")).unwrap();
    for job in &jobs {
        let is_lost = job.contains(&format!("ArrayTaskId={part} "));
        assert_eq!(job.contains(" Restarts=1 "), is_lost, "{job}");
        assert!(job.contains(" JobState=COMPLETED "), "{job}");
    }
    assert_eq!(jobs.len(), 7, "the eighth job was cancelled before it began");
    let store = dir.path("s.results");
    assert!(
        fs::exists(format!("{store}/rows-{part}-of-8.0002.jsonl")).unwrap(),
        "the restarted job continued in a new file"
    );
    assert_eq!(after_failure["done"], 280, "the cancelled job leaves every eighth run: {after_failure}");
    let counts = rows_by_run(&store);
    assert!(counts.len() == 320 && counts.values().all(|count| *count == 1), "no run was repeated");
    assert!(merged(&store) == uninterrupted(&dir, &file));
}

/// Two hosts, each with its own sshd, without a shared file.
#[test]
#[ignore = "starts its own sshd: sh interop/setup.sh long"]
fn gnu_parallel_fills_stores_over_ssh() {
    assert!(nix::unistd::geteuid().is_root(), "this test creates network namespaces: run it as root");
    let dir = TempDir::new("sweep");
    let file = dir.write("s.toml", SWEEP);
    let script = r#"set -e
        cd "$2"
        mkdir -p /run/netns /run/sshd home
        mount -t tmpfs tmpfs /run/netns
        export HOME="$PWD/home"
        for key in host user; do ssh-keygen -q -t ed25519 -N '' -C test -f $key; done
        printf '%s\n' "HostKey $PWD/host" "AuthorizedKeysFile $PWD/user.pub" "PermitRootLogin prohibit-password" \
            "StrictModes no" "UsePAM no" "SetEnv PATH=$PATH" > sshd.conf
        printf '%s\n' "IdentityFile $PWD/user" "IdentitiesOnly yes" "UserKnownHostsFile $PWD/known" \
            "StrictHostKeyChecking yes" > ssh.conf
        for host in 1 2; do
            ip netns add host$host
            ip link add to$host type veth peer name eth0 netns host$host
            ip addr add 10.9.$host.1/30 dev to$host
            ip link set to$host up
            ip -n host$host addr add 10.9.$host.2/30 dev eth0
            ip -n host$host link set eth0 up
            ip netns exec host$host /usr/sbin/sshd -f sshd.conf -o ListenAddress=10.9.$host.2 -o PidFile=none \
                -E "$PWD/sshd$host.log"
            echo "10.9.$host.2 $(cut -d' ' -f1,2 host.pub)" >> known
        done
        parallel --ssh "ssh -F $PWD/ssh.conf" --sshlogin 1/10.9.1.2,1/10.9.2.2 --workdir "$PWD" \
            airtcp sweep run s.toml --quiet --jobs 1 --shard {}/8 --store {}.results '&&' \
            echo '$SSH_CONNECTION' ::: $(seq 8)
        airtcp sweep merge [1-8].results --output merged"#;
    let arguments = [&file, dir.to_str().unwrap(), script];
    let isolated = "exec timeout 120 unshare --net --mount --pid --fork --kill-child --mount-proc sh -c \"$3\" sh \"$1\" \"$2\"";
    let ended = Ended::of(shell(isolated, &arguments).output().unwrap());
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let jobs_on = |host: &str| ended.stdout.lines().filter(|line| line.contains(host)).count();
    let [first, second] = [jobs_on(" 10.9.1.2 22"), jobs_on(" 10.9.2.2 22")];
    assert!(first > 0 && second > 0 && first + second == 8, "{}{}", ended.stdout, ended.stderr);
    assert!(fs::read_to_string(dir.path("merged")).unwrap() == uninterrupted(&dir, &file));
}

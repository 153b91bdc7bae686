#!/usr/bin/env python3
"""Runs random arrivals through the kernel's queue disciplines and prints the outcome of each packet: the vectors of this
directory (README.md).

  record.py SOURCE > recorded.jsonl

SOURCE is a kernel source tree, such as that of Debian's package linux-source-6.12. Needs cc. The same source gives the same
file."""
import argparse, json, pathlib, subprocess, tempfile

MASK = (1 << 64) - 1
MS = 1_000_000


class SplitMix:
    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def arrivals(seed, flows):
    """(time, length, flow, ECN) of every packet. Gaps are uniform in 0..2*gap, lengths in min..=max."""
    packets = []
    for number, flow in enumerate(flows):
        rng = SplitMix(seed + number)
        at = flow["from"]
        while True:
            at += rng.next() % (2 * flow["gap"])
            length = flow["min"] + rng.next() % (flow["max"] - flow["min"] + 1)
            if at >= flow["to"]:
                break
            packets.append((at, length, number, 2 if flow["ect"] else 0))
    packets.sort(key=lambda packet: (packet[0], packet[2]))
    return packets


def flow(gap, start, stop, ect=False, shortest=200, longest=1500):
    return {"gap": gap, "from": start, "to": stop, "min": shortest, "max": longest, "ect": ect}


CODEL = {"target": 5 * MS, "interval": 100 * MS, "mtu": 1500}
PIE = {"target": 15 * MS, "t_update": 15 * MS, "alpha": 2, "beta": 20, "max_burst": 150 * MS, "mtu": 1500}
S = 1000 * MS
# CoDel's clock has 32 bits and ticks every nanosecond here, so it can order times that are at most 2.1 s apart.
T = 700 * MS


def scenarios():
    """At 10 Mbit/s, a packet of the average size, 850 bytes, takes 0.68 ms."""
    rate = 10_000_000
    load = lambda percent: round(0.68 * MS * 100 / percent)
    waves = lambda ect, percent, S=S: [
        flow(load(90), 0, 3 * S, ect), flow(load(percent), S // 5, S, ect), flow(load(percent), 3 * S // 2, 2 * S, ect)
    ]
    short = lambda ect, percent: waves(ect, percent, T)
    for exact in (True, False):
        base = {"rate": rate, "exact": exact}
        suffix = "" if exact else "-newton"
        yield dict(base, name="codel" + suffix, discipline="codel", ecn=False, limit=1000, settings=CODEL, seed=1,
                   flows=short(False, 40))
        yield dict(base, name="codel-ecn" + suffix, discipline="codel", ecn=True, limit=1000, settings=CODEL, seed=2,
                   flows=short(True, 20))
        yield dict(base, name="codel-mixed" + suffix, discipline="codel", ecn=True, limit=60, settings=CODEL, seed=3,
                   flows=[flow(load(80), 0, 3 * T, True), flow(load(70), T // 3, 2 * T, False)])
        fair = dict(CODEL, flows=16, quantum=1514)
        yield dict(base, name="fq-codel" + suffix, discipline="fq-codel", ecn=False, limit=10240, settings=fair, seed=4,
                   flows=[flow(load(70), 0, 3 * T), flow(load(60), T // 4, 5 * T // 2), flow(load(5), 0, 3 * T, shortest=60, longest=200)])
        yield dict(base, name="fq-codel-ecn" + suffix, discipline="fq-codel", ecn=True, limit=10240, settings=fair, seed=5,
                   flows=[flow(load(60), 0, 2 * T, True), flow(load(40), T // 4, 3 * T // 2, True), flow(load(30), 0, 3 * T)])
        yield dict(base, name="fq-codel-full" + suffix, discipline="fq-codel", ecn=True, limit=80, settings=dict(fair, quantum=300), seed=6,
                   flows=[flow(load(90), 0, T, False), flow(load(50), T // 4, 3 * T // 2, True), flow(load(30), 0, 2 * T, shortest=40, longest=1200)])
    base = {"rate": rate, "exact": True}
    yield dict(base, name="pie", discipline="pie", ecn=False, limit=1000, settings=PIE, seed=7, flows=waves(False, 30))
    yield dict(base, name="pie-ecn", discipline="pie", ecn=True, limit=1000, settings=PIE, seed=8,
               flows=[flow(load(96), 0, 3 * S, True), flow(load(9), S // 5, S, True), flow(load(8), 3 * S // 2, 5 * S // 2, True)])
    yield dict(base, name="pie-heavy", discipline="pie", ecn=True, limit=200, settings=PIE, seed=9,
               flows=[flow(load(90), 0, 3 * S, True), flow(load(70), S // 3, 2 * S, False)])
    yield dict(base, name="pie-fast", discipline="pie", ecn=False, limit=1000, seed=10,
               settings=dict(PIE, target=5 * MS, t_update=5 * MS, alpha=3, beta=24), flows=waves(False, 30))
    yield dict(base, name="pie-above-one", discipline="pie", ecn=False, limit=1000, seed=10,
               settings=dict(PIE, target=5 * MS, t_update=5 * MS, alpha=8, beta=40), flows=waves(False, 50))
    # max_p is in units of 2^-32 per byte between the thresholds.
    red = {"min": 20_000, "max": 60_000, "wlog": 6, "max_p": 40_000 * 6000, "mtu": 1500}
    yield dict(base, name="red", discipline="red", ecn=False, limit=1000, settings=red, seed=11,
               flows=[flow(load(103), 0, 3 * S)])
    yield dict(base, name="red-ecn", discipline="red", ecn=True, limit=1000, settings=dict(red, max_p=40_000 * 20_000), seed=12,
               flows=[flow(load(80), 0, 3 * S, True), flow(load(28), S // 5, S // 2, True), flow(load(25), S, 3 * S // 2, True), flow(load(20), 2 * S, 5 * S // 2, False)])


def build(source, directory):
    """Builds one program for each discipline. Compiles only the parts of the kernel's files that handle packets."""
    here = pathlib.Path(__file__).parent
    net, linux = directory / "net", directory / "linux"
    net.mkdir()
    linux.mkdir()
    for name in ["codel.h", "codel_impl.h", "codel_qdisc.h", "pie.h", "red.h"]:
        (net / name).write_text((source / "include/net" / name).read_text())
    for name in ["net/pkt_sched.h", "net/pkt_cls.h", "net/inet_ecn.h", "net/netlink.h", "net/dsfield.h"] + [
        f"linux/{name}.h" for name in ["module types kernel jiffies string in errno init skbuff slab vmalloc ktime bug reciprocal_div prefetch"][0].split()
    ]:
        (directory / name).write_text('#include "shim.h"\n')
    policy, timer, peek = "static const struct nla_policy", "static void pie_timer", "static struct sk_buff *red_peek"
    cut = {
        "codel": lambda text: text.split(policy)[0],
        "fq_codel": lambda text: text.split(policy)[0],
        "pie": lambda text: text.split(policy)[0] + "void pie_process_dequeue" + text.split("void pie_process_dequeue")[1].split(timer)[0],
        "red": lambda text: text.split(peek)[0],
    }
    programs = {}
    for name, keep in cut.items():
        (directory / f"sch_{name}.c").write_text(keep((source / f"net/sched/sch_{name}.c").read_text()))
        program = directory / name
        subprocess.run(
            ["cc", "-O1", "-w", f"-D{name.upper()}", f"-I{directory}", f"-I{here}", "-o", program, here / "harness.c", "-lm"],
            check=True,
        )
        programs[name.replace("_", "-")] = program
    return programs


def play(program, scenario):
    settings = dict(scenario["settings"], rate=scenario["rate"], limit=scenario["limit"], ecn=int(scenario["ecn"]),
                    exact=int(scenario["exact"]), draws=scenario["seed"])
    lines = [f"{key} {value}" for key, value in settings.items()]
    packets = arrivals(scenario["seed"], scenario["flows"])
    lines += ["@ %d %d %d %d" % packet for packet in packets]
    output = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    left, drops, marks = [], [], []
    for line in output.splitlines():
        what, number, at, *ecn = line.split()
        if what == ">":
            left.append(int(number))
            if ecn == ["3"]:
                marks.append(int(number))
        else:
            drops.append([int(number), int(at)])
    assert len(left) + len(drops) == len(packets), scenario["name"]
    vector = dict(scenario, packets=len(packets), drops=drops, marks=sorted(marks))
    if left != sorted(left):
        # Delta-encoded: each number is relative to the previous one.
        vector["order"] = [number - before for before, number in zip([0] + left, left)]
    return vector


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    source = parser.parse_args().source
    with tempfile.TemporaryDirectory() as directory:
        programs = build(source, pathlib.Path(directory))
        for scenario in scenarios():
            print(json.dumps(play(programs[scenario["discipline"]], scenario), separators=(",", ":")))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Random loss patterns for the ns-2 comparison: generates scenarios, runs ns-2's sender (ref_ns2.py) on them, and prints
vectors in the format of this directory (README.md).

  generate.py REF_NS2 [--ranges usual|wide] [--seed N] [--count N] > random.jsonl

The same seed gives the same file. Every sender gets the same number of scenarios. `usual` has two paths and common
settings. `wide` has any rate, delay, number of hops, segment and window size, timer and loss rate."""
import argparse, importlib.util, json, math, random

# Name of a path -> hops in order from the sender (bit/s, seconds), and payload bytes per segment.
PATHS = {
    "M": dict(forward=[[10000000, 0.01], [1000000, 0.04]], payload=960),
    "A": dict(forward=[[1000000, 0.005], [1000000, 0.005], [128000, 0.025]], payload=512),
}
SENDERS = {"tahoe": "Tahoe", "reno": "Reno", "newreno": "Newreno", "sack": "Sack1"}
DURATION = 100
# Phase of ns-2's clock within a tick, fixed by its random number generator: phase = tick * PHASE.
PHASE = 1193744747 / 2147483647.0
# Values of the keys that a vector omits.
DEFAULTS = dict(
    stop=DURATION, flow=0, host="n0", start=0, initial_window_after_syn_loss=1, careful="on", syn=False, delay_growth=False,
    exit_recovery_fix=False, max_burst=0, fast_retransmit=True, frto=False, timestamps=False,
    max_rto=64, initial_rto=6, min_rto_before_backoff=True, impatient=False, partial_window_deflation=False, sack=False,
    rfc2581_immediate_ack=True, syn_immediate_ack=True, loss_point="far-end", limited_transmit=False, precision_reduce=True,
    initial_window=1, delayed_ack=None, ack_drops=[],
)


def usual_set(name):
    """The line that gives the defaults shared by the vectors of one path."""
    path = PATHS[name]
    hops = [hop + ["unlimited"] for hop in path["forward"]]
    payload = path["payload"]
    return dict(
        set=name, **DEFAULTS, forward=hops, reverse=hops[::-1], payload=payload, first_bytes=payload, data_bytes=payload,
        loss_hop=len(hops) - 1,
    )


def complete(rng, scenario):
    """Adds the settings that both kinds of scenario share."""
    scenario["tick_phase"] = float("%.12g" % (scenario["tick"] * PHASE))
    if scenario["sender"] == "newreno":
        scenario["impatient"] = rng.random() < 0.5
        scenario["partial_window_deflation"] = rng.random() < 0.5
    return scenario


def draw_usual(rng, sender):
    """The settings of one scenario, in this directory's keys."""
    name = rng.choice("MA")
    path = PATHS[name]
    syn = rng.random() < 0.5
    headers = 40 * rng.randint(0, 1)
    hops = [hop + ["unlimited"] for hop in path["forward"]]
    scenario = dict(
        set=name,
        sender=sender,
        segments=rng.randint(40, 70),
        window=rng.choice([3, 4, 6, 8, 12, 16, 20, 30]),
        initial_window=rng.choice([1, 2, 4]),
        syn=syn,
        delay_growth=syn,
        limited_transmit=rng.random() < 0.5,
        precision_reduce=rng.random() < 0.75,
        tick=rng.choice([0.01, 0.1, 0.5]),
        min_rto=rng.choice([0, 0.2, 1]),
        sack=sender == "sack",
        delayed_ack=rng.choice([None, 0.1, 0.2]),
        forward=hops,
        reverse=hops[::-1],
        payload=path["payload"],
        first_bytes=40 if syn else path["payload"],
        data_bytes=path["payload"] + headers,
        loss_hop=len(hops) - 1,
    )
    return complete(rng, scenario)


def spread(rng, least, most):
    """A log-uniform number, rounded to two digits so that its text form is exact."""
    return float("%.2g" % math.exp(rng.uniform(math.log(least), math.log(most))))


def draw_wide(rng, sender):
    """Like draw_usual, from wide ranges. The window stays below 64 KiB, because there is no window scaling."""
    payload = rng.choice([rng.randint(64, 128), rng.randint(100, 1460), 536, 1460])
    most = 65535 // payload
    syn = rng.random() < 0.5
    wired = [spread(rng, 64e3, 1e9), spread(rng, 1e-4, 1), "unlimited"]
    lossy = [spread(rng, 9.6e3, 1e8), spread(rng, 1e-4, 1), "unlimited"]
    hops = [wired] * rng.randint(0, 4) + [lossy]
    scenario = dict(
        set="W",
        sender=sender,
        stop=rng.choice([20, 100, 500]),
        segments=rng.choice([rng.randint(1, 20), rng.randint(20, 100), rng.randint(100, 400)]),
        window=min(most, rng.choice([rng.randint(1, 8), rng.randint(8, 40), rng.randint(40, 200)])),
        initial_window=rng.choice([1, 1, 2, 3, 4, 10, rng.randint(1, 40)]),
        syn=syn,
        delay_growth=syn,
        limited_transmit=rng.random() < 0.5,
        precision_reduce=rng.random() < 0.5,
        tick=rng.choice([0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1]),
        min_rto=rng.choice([0, 0, 0.2, 0.4, 1, 3]),
        max_rto=rng.choice([3, 10, 60, 64, 240]),
        initial_rto=rng.choice([0.5, 1, 3, 6]),
        min_rto_before_backoff=rng.random() < 0.5,
        sack=sender == "sack",
        delayed_ack=rng.choice([None, None, 0.04, 0.1, 0.2, 0.5]),
        forward=hops,
        reverse=hops[::-1],
        payload=payload,
        first_bytes=40 if syn else payload,
        data_bytes=payload + 40 * rng.randint(0, 1),
        loss_hop=len(hops) - 1,
    )
    return complete(rng, scenario)


def simulate(ref, scenario, drops, ack_drops):
    hops = scenario["forward"]
    unit = lambda bits: "%gkb" % (bits / 1e3)
    wired, lossy = hops[0], hops[-1]
    setting = lambda key: scenario.get(key, DEFAULTS[key])
    config = dict(
        wbw=unit(wired[0]), wdelay="%gms" % (wired[1] * 1e3), abw=unit(lossy[0]), adelay="%gms" % (lossy[1] * 1e3),
        linkhops=len(hops), mss=scenario["payload"], hdr=int(scenario["data_bytes"] > scenario["payload"]),
        wnd=scenario["window"], iw=scenario["initial_window"], syn=int(scenario["syn"]), dg=int(scenario["delay_growth"]),
        singledup=int(scenario["limited_transmit"]), prec=int(scenario["precision_reduce"]), tick=scenario["tick"],
        minrto=scenario["min_rto"], maxrto=setting("max_rto"), rtxinit=setting("initial_rto"),
        rfc2988=int(setting("min_rto_before_backoff")), delack=scenario["delayed_ack"] or 0,
        newreno1=int(setting("impatient")), pwd=int(setting("partial_window_deflation")),
    )
    sender = SENDERS[scenario["sender"]]
    return ref.simulate(sender, config, drops, ack_drops, scenario["segments"], setting("stop"), u0=PHASE)


def transmissions(log):
    return [(time, segment) for time, event, segment in log if event in "SR"]


def draw_losses_wide(rng, ref, scenario):
    """Like draw_losses, or random losses at a rate from 0.1 % to 50 %."""
    if rng.random() < 0.5:
        return draw_losses(rng, ref, scenario)
    rates = [rng.choice([0, spread(rng, 0.001, 0.5)]) for _ in range(2)]
    # More transmissions than any scenario makes.
    drops, ack_drops = ({k for k in range(4000) if rng.random() < rate} for rate in rates)
    sent = len(transmissions(simulate(ref, scenario, drops, ack_drops)))
    return drops, {k for k in ack_drops if k < sent}


def draw_losses(rng, ref, scenario):
    """Indices of lost segments and ACKs, chosen step by step, because each loss changes the later transmissions."""
    drops, ack_drops = set(), set()
    for _ in range(rng.randint(1, 7)):
        sent = transmissions(simulate(ref, scenario, drops, ack_drops))
        again = [k for k, (_, segment) in enumerate(sent) if segment in {s for _, s in sent[:k]} and k not in drops]
        kind = rng.choice(["one", "burst", "scattered", "again", "ack", "acks"])
        # Special rules apply to losses at the start of a connection.
        at = rng.randrange(len(sent) if rng.random() < 0.8 else 6)
        if kind == "one":
            drops.add(at)
        elif kind == "burst":
            drops.update(range(at, at + rng.randint(2, 10)))
        elif kind == "scattered":
            drops.update(k for k in range(at, at + 20) if rng.random() < 0.25)
        elif kind == "again" and again:
            drops.add(rng.choice(again))
        elif kind == "ack":
            ack_drops.add(at)
        elif kind == "acks":
            ack_drops.update(range(at, at + rng.randint(2, 6)))
    return drops, ack_drops


def named(sent, drops):
    """Loss indices as SEGMENT#NTH. The path preserves the order, so index k is the k-th segment sent."""
    count, names = {}, []
    for k, (_, segment) in enumerate(sent):
        count[segment] = count.get(segment, 0) + 1
        if k in drops:
            names.append("%d#%d" % (segment, count[segment]))
    return " ".join(names)


def compact(sent):
    groups = []  # [microseconds, first, last]
    for time, segment in sent:
        micros = round(time * 1e6)
        if groups and groups[-1][0] == micros and groups[-1][2] + 1 == segment:
            groups[-1][2] = segment
        else:
            groups.append([micros, segment, segment])
    deltas = [(g[0] - (groups[i - 1][0] if i else 0), g[1], g[2]) for i, g in enumerate(groups)]
    words, i = [], 0
    while i < len(deltas):
        delta, first, last = deltas[i]
        length, times = last - first + 1, 1
        while deltas[i + times : i + times + 1] == [(delta, first + times * length, last + times * length)]:
            times += 1
        words.append("%d:%d" % (delta, first) + ("-%d" % last if last > first else "") + ("*%d" % times if times > 1 else ""))
        i += times
    return " ".join(words)


# How to generate each kind of scenario: sets of defaults, settings, losses.
RANGES = {
    "usual": ({name: usual_set(name) for name in PATHS}, draw_usual, draw_losses),
    "wide": ({"W": dict(set="W", **DEFAULTS)}, draw_wide, draw_losses_wide),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ref_ns2")
    parser.add_argument("--ranges", choices=RANGES, default="usual")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    spec = importlib.util.spec_from_file_location("ref_ns2", options.ref_ns2)
    ref = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ref)

    show = lambda value: print(json.dumps(value, separators=(",", ":")))
    sets, draw, draw_losses = RANGES[options.ranges]
    for line in sets.values():
        show(line)
    rng = random.Random(options.seed)
    for index in range(options.count):
        sender = list(SENDERS)[index % len(SENDERS)]
        while True:
            scenario = draw(rng, sender)
            drops, ack_drops = draw_losses(rng, ref, scenario)
            log = simulate(ref, scenario, drops, ack_drops)
            # Skip ties: rounding decides their order, so they show nothing about TCP.
            if not any(event == "T" for _, event, _ in log):
                break
        sent = transmissions(log)
        losses = dict(drops=named(sent, drops), ack_drops=sorted(ack_drops))
        defaults = sets[scenario["set"]]
        own = {k: v for k, v in {**scenario, **losses}.items() if k == "set" or k not in defaults or defaults[k] != v}
        show(dict(name="%03d_%s" % (index, sender), **own, tx=compact(sent)))


if __name__ == "__main__":
    main()

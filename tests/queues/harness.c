/* Runs arrivals through one of the kernel's queue disciplines and a transmitter. record.py builds the program once per
 * discipline, selected with -D. Input on stdin:
 *
 *   KEY NUMBER                    a setting
 *   @ TIME LENGTH FLOW ECN        a packet, in nanoseconds and bytes
 *
 * Output for each packet: "> ID TIME ECN" when its transmission begins, or "x ID TIME" when it is dropped. */
#include "shim.h"

u64 now;
bool exact_square_root;
u32 *current_count;

static u64 state;

/* SplitMix64 (Steele, Lea, Flood 2014). */
u64 draw(void) {
    u64 z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

void dropped(struct sk_buff *skb) { printf("x %u %llu\n", skb->id, (unsigned long long)now); }

static struct setting { char key[32]; double value; } settings[32];
static int known;

static double setting(const char *key) {
    for (int i = 0; i < known; i++)
        if (!strcmp(settings[i].key, key)) return settings[i].value;
    fprintf(stderr, "no setting %s\n", key);
    exit(1);
}

static struct netdev dev;
static struct Qdisc sch = {.dev = &dev};

#if defined(CODEL) || defined(FQ_CODEL)
#include <net/codel.h>
#include <net/codel_impl.h>
/* Sets current_count for reciprocal_scale(). */
#define codel_dequeue(ctx, backlog, params, vars, ...)                                                              \
    (current_count = &(vars)->count, (codel_dequeue)(ctx, backlog, params, vars, __VA_ARGS__))
static void codel_settings(struct codel_params *params) {
    codel_params_init(params);
    params->target = setting("target");
    params->interval = setting("interval");
    params->mtu = setting("mtu");
    params->ecn = setting("ecn");
}
#endif

#if defined(CODEL)
#include "sch_codel.c"
static struct codel_sched_data data;
static void init(void) {
    codel_settings(&data.params);
    codel_vars_init(&data.vars);
}
static void enqueue(struct sk_buff *skb) { codel_qdisc_enqueue(skb, &sch, NULL); }
static struct sk_buff *dequeue(void) { return codel_qdisc_dequeue(&sch); }
static u64 next_timer(void) { return U64_MAX; }
static void timer(void) {}

#elif defined(FQ_CODEL)
#include "sch_fq_codel.c"
static struct fq_codel_sched_data data;
static void init(void) {
    codel_settings(&data.cparams);
    data.flows_cnt = setting("flows");
    data.quantum = setting("quantum");
    data.drop_batch_size = 64;
    data.memory_limit = UINT32_MAX;
    INIT_LIST_HEAD(&data.new_flows);
    INIT_LIST_HEAD(&data.old_flows);
    data.flows = calloc(data.flows_cnt, sizeof *data.flows);
    data.backlogs = calloc(data.flows_cnt, sizeof *data.backlogs);
    for (u32 i = 0; i < data.flows_cnt; i++) INIT_LIST_HEAD(&data.flows[i].flowchain);
}
static void enqueue(struct sk_buff *skb) {
    /* The class, which counts from 1, selects the queue instead of the hash. */
    skb->priority = skb->hash + 1;
    sch.handle = 0;
    fq_codel_enqueue(skb, &sch, NULL);
}
static struct sk_buff *dequeue(void) { return fq_codel_dequeue(&sch); }
static u64 next_timer(void) { return U64_MAX; }
static void timer(void) {}

#elif defined(PIE)
#include "sch_pie.c"
static struct pie_sched_data data;
static u64 update, next_update;
static void init(void) {
    pie_params_init(&data.params);
    pie_vars_init(&data.vars);
    data.params.target = setting("target");
    data.params.alpha = setting("alpha");
    data.params.beta = setting("beta");
    data.params.ecn = setting("ecn");
    data.vars.burst_time = setting("max_burst");
    next_update = update = setting("t_update");
}
static void enqueue(struct sk_buff *skb) { pie_qdisc_enqueue(skb, &sch, NULL); }
static struct sk_buff *dequeue(void) {
    struct sk_buff *skb = qdisc_dequeue_peeked(&sch);
    if (skb) pie_process_dequeue(skb, &data.params, &data.vars, sch.qstats.backlog);
    return skb;
}
static u64 next_timer(void) { return next_update; }
static void timer(void) {
    pie_calculate_probability(&data.params, &data.vars, sch.qstats.backlog);
    next_update += update;
}

#elif defined(RED)
#include "sch_red.c"
static struct red_sched_data data;
static struct Qdisc child = {.dev = &dev};
static void init(void) {
    child.limit = sch.limit;
    data.qdisc = &child;
    data.flags = setting("ecn") ? TC_RED_ECN : 0;
    red_set_vars(&data.vars);
    red_set_parms(&data.parms, setting("min"), setting("max"), setting("wlog"), 0, 0, NULL, setting("max_p"));
}
static void enqueue(struct sk_buff *skb) { red_enqueue(skb, &sch, NULL); }
static struct sk_buff *dequeue(void) { return red_dequeue(&sch); }
static u64 next_timer(void) { return U64_MAX; }
static void timer(void) {}
#endif

/* The transmitter. `carry` passes the rounding error of one packet to the next. */
static u64 rate, carry, end = U64_MAX, free_since;

static void begin(struct sk_buff *skb) {
    printf("> %u %llu %u\n", skb->id, (unsigned long long)now, skb->ecn);
    if (free_since != now) carry = rate / 2;
    u64 total = skb->len * 8000000000ULL + carry;
    carry = total % rate;
    end = now + total / rate;
}

static void run_until(u64 time) {
    while (min(end, next_timer()) <= time) {
        if (next_timer() == U64_MAX && end == U64_MAX) break;
        /* At equal times, the timer comes first. */
        if (next_timer() <= end) {
            now = next_timer();
            timer();
            if (end == U64_MAX && time == U64_MAX) break;
            continue;
        }
        now = end;
        free_since = end;
        end = U64_MAX;
        struct sk_buff *skb = dequeue();
        if (skb) begin(skb);
    }
}

int main(void) {
    char key[32];
    u32 id = 0;
    bool begun = false;
    sch.data = &data;
    while (scanf("%31s", key) == 1) {
        if (strcmp(key, "@")) {
            strcpy(settings[known].key, key);
            if (scanf("%lf", &settings[known++].value) != 1) return 1;
            continue;
        }
        if (!begun) {
            begun = true;
            sch.limit = setting("limit");
            dev.mtu = setting("mtu");
            rate = setting("rate");
            state = setting("draws");
            exact_square_root = setting("exact");
            init();
        }
        unsigned long long at;
        struct sk_buff *skb = calloc(1, sizeof *skb);
        unsigned ecn;
        if (scanf("%llu %u %u %u", &at, &skb->len, &skb->hash, &ecn) != 4) return 1;
        skb->ecn = ecn;
        skb->id = id++;
        skb->truesize = skb->len;
        run_until(at);
        now = at;
        enqueue(skb);
        if (end == U64_MAX && (skb = dequeue())) begin(skb);
    }
    run_until(U64_MAX);
    return 0;
}

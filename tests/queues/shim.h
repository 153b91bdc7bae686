/* Minimal replacement for the parts of the kernel that the queue disciplines use: a clock that the harness sets, packets
 * that are only numbers, and random numbers with a known seed. */
#ifndef SHIM_H
#define SHIM_H

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int32_t s32;
typedef int64_t s64;
typedef s64 ktime_t;
typedef u64 psched_time_t;

#define __rcu
#define likely(x) (x)
#define unlikely(x) (x)
#define fallthrough
#define typecheck(type, x) 1
#define WRITE_ONCE(x, value) ((x) = (value))
#define READ_ONCE(x) (x)
#define EXPORT_SYMBOL_GPL(x)
#define U64_MAX UINT64_MAX
#define BITS_PER_BYTE 8
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_USEC 1000L
#define USEC_PER_MSEC 1000L
#define do_div(n, base) ((n) /= (base))
#define div_u64(n, d) ((u64)(n) / (u32)(d))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(t, a, b) min((t)(a), (t)(b))
#define clamp_t(t, x, lo, hi) min(max((t)(x), (t)(lo)), (t)(hi))
#define DIV_ROUND_CLOSEST(x, d) (((x) + (d) / 2) / (d))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define BUG() abort()
static inline int fls(u32 x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline void prefetch(const void *p) { (void)p; }

/* Time in nanoseconds. CoDel's unit is 1024 units of ktime_get_ns(), which makes it one nanosecond here. */
extern u64 now;
static inline u64 ktime_get_ns(void) { return now << 10; }
static inline ktime_t ktime_get(void) { return now; }
static inline s64 ktime_us_delta(ktime_t a, ktime_t b) { return (a - b) / 1000; }
/* The packet scheduler's clock also ticks every nanosecond. */
#define PSCHED_NS2TICKS(x) ((u64)(x))
#define PSCHED_TICKS_PER_SEC 1000000000LL
static inline psched_time_t psched_get_time(void) { return now; }
#define usecs_to_jiffies(x) ((x) / 1000)

u64 draw(void);
static inline void get_random_bytes(void *to, int n) { u64 r = draw(); memcpy(to, &r, n); }
static inline u32 get_random_u32(void) { return draw() >> 32; }

/* Scaling by a factor in units of 2^-32. With exact_square_root, divides by the square root of *current_count instead. */
extern bool exact_square_root;
extern u32 *current_count;
static inline u32 scale(u32 x, u32 by) { return ((u64)x * by) >> 32; }
static inline u32 reciprocal_scale(u32 x, u32 by) {
    if (exact_square_root && current_count) return (u32)((double)x / sqrt((double)*current_count));
    return scale(x, by);
}
struct reciprocal_value { u32 divisor; };
static inline struct reciprocal_value reciprocal_value(u32 d) { return (struct reciprocal_value){d}; }
static inline u32 reciprocal_divide(u32 a, struct reciprocal_value r) { return a / r.divisor; }

struct list_head { struct list_head *next, *prev; };
static inline void INIT_LIST_HEAD(struct list_head *l) { l->next = l->prev = l; }
static inline bool list_empty(const struct list_head *l) { return l->next == l; }
static inline void list_del_init(struct list_head *l) {
    l->prev->next = l->next; l->next->prev = l->prev; INIT_LIST_HEAD(l);
}
static inline void list_add_tail(struct list_head *l, struct list_head *to) {
    l->prev = to->prev; l->next = to; to->prev->next = l; to->prev = l;
}
static inline void list_move_tail(struct list_head *l, struct list_head *to) { list_del_init(l); list_add_tail(l, to); }
#define list_first_entry(head, type, member) container_of((head)->next, type, member)

struct sk_buff { struct sk_buff *next; u32 id, len, truesize, hash, priority; u8 ecn, end; char cb[64]; };
struct qdisc_skb_cb { char data[64]; };
static inline struct qdisc_skb_cb *qdisc_skb_cb(const struct sk_buff *skb) { return (struct qdisc_skb_cb *)skb->cb; }
#define qdisc_cb_private_validate(skb, size) ((void)0)
static inline u32 qdisc_pkt_len(const struct sk_buff *skb) { return skb->len; }
static inline void skb_mark_not_on_list(struct sk_buff *skb) { skb->next = NULL; }
static inline u32 skb_get_hash(struct sk_buff *skb) { return skb->hash; }
static inline int skb_get_dsfield(struct sk_buff *skb) { return skb->ecn; }
static inline int INET_ECN_set_ce(struct sk_buff *skb) { if (skb->ecn) skb->ecn = 3; return skb->ecn != 0; }

struct netdev { u32 mtu; };
struct Qdisc {
    struct { u32 qlen; struct sk_buff *head, *tail; } q;
    struct { u32 backlog, drops, overlimits; } qstats;
    u32 limit, handle, flags;
    struct netdev *dev;
    void *data;
    int gso_skb;
};
#define qdisc_priv(sch) ((sch)->data)
#define qdisc_dev(sch) ((sch)->dev)
#define psched_mtu(dev) ((dev)->mtu)
static inline u32 qdisc_qlen(const struct Qdisc *sch) { return sch->q.qlen; }
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define NET_XMIT_CN 2
#define __NET_XMIT_BYPASS 0x20000
#define __NET_XMIT_STOLEN 0x10000
#define TC_H_MAJ(h) ((h) & 0xffff0000U)
#define TC_H_MIN(h) ((h) & 0x0000ffffU)
#define net_xmit_drop_count(e) ((e) != 0)

void dropped(struct sk_buff *skb);
static inline void kfree_skb(struct sk_buff *skb) { dropped(skb); }
static inline void __qdisc_drop(struct sk_buff *skb, struct sk_buff **to_free) { (void)to_free; dropped(skb); }
static inline int qdisc_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free) {
    (void)sch; (void)to_free; dropped(skb); return NET_XMIT_DROP;
}
static inline void qdisc_qstats_drop(struct Qdisc *sch) { sch->qstats.drops++; }
static inline void __qdisc_qstats_drop(struct Qdisc *sch, u32 n) { sch->qstats.drops += n; }
static inline void qdisc_qstats_overlimit(struct Qdisc *sch) { sch->qstats.overlimits++; }
static inline void qdisc_qstats_backlog_inc(struct Qdisc *sch, const struct sk_buff *skb) { sch->qstats.backlog += skb->len; }
static inline void qdisc_qstats_backlog_dec(struct Qdisc *sch, const struct sk_buff *skb) { sch->qstats.backlog -= skb->len; }
static inline void qdisc_tree_reduce_backlog(struct Qdisc *sch, int n, int len) { (void)sch; (void)n; (void)len; }
#define qdisc_bstats_update(sch, skb) ((void)0)
static inline int qdisc_enqueue_tail(struct sk_buff *skb, struct Qdisc *sch) {
    skb->next = NULL;
    if (sch->q.head) sch->q.tail->next = skb; else sch->q.head = skb;
    sch->q.tail = skb; sch->q.qlen++; sch->qstats.backlog += skb->len;
    return NET_XMIT_SUCCESS;
}
/* Like the kernel's __qdisc_dequeue_head(): the caller updates the backlog. */
static inline struct sk_buff *shim_dequeue(struct Qdisc *sch) {
    struct sk_buff *skb = sch->q.head;
    if (skb) { sch->q.head = skb->next; sch->q.qlen--; }
    return skb;
}
#define __qdisc_dequeue_head(list) shim_dequeue(container_of(list, struct Qdisc, q))

/* RED's child queue, bounded only by `limit`. */
static inline int qdisc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free) {
    return sch->q.qlen < sch->limit ? qdisc_enqueue_tail(skb, sch) : qdisc_drop(skb, sch, to_free);
}
static inline struct sk_buff *qdisc_dequeue_peeked(struct Qdisc *sch) {
    struct sk_buff *skb = shim_dequeue(sch);
    if (skb) sch->qstats.backlog -= skb->len;
    return skb;
}

/* Unused declarations of classifiers, timers and netlink. */
struct tcf_proto; struct tcf_block; struct tcf_result { u32 classid; }; struct timer_list { int unused; };
struct netlink_ext_ack; struct nlattr; struct nla_bitfield32 { u32 value, selector; };
struct tcf_qevent { int unused; };
struct Qdisc_ops;
#define tcf_qevent_handle(qe, sch, skb, to_free, ret) (skb)
#define rcu_dereference_bh(p) (p)
static inline int tcf_classify_qdisc(struct sk_buff *s, struct tcf_proto *f, struct tcf_result *r, bool c) {
    (void)s; (void)f; (void)r; (void)c; return -1;
}
static inline struct sk_buff *skb_peek(void *list) { (void)list; return NULL; }
#define __skb_queue_head(list, skb) ((void)0)
#define NL_SET_ERR_MSG_MOD(extack, message) ((void)(extack))
#define EINVAL 22
static inline struct nla_bitfield32 nla_get_bitfield32(struct nlattr *a) { (void)a; return (struct nla_bitfield32){0, 0}; }
#define TC_RED_ECN 1
#define TC_RED_HARDDROP 2
#define TC_RED_ADAPTATIVE 4
#define TC_RED_NODROP 8
#define TC_RED_HISTORIC_FLAGS (TC_RED_ECN | TC_RED_HARDDROP | TC_RED_ADAPTATIVE)
#endif

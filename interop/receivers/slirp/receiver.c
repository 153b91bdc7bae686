// libslirp as a receiver: the TCP of a virtual machine's user network. The sender takes the role of its guest.
#include "guest.h"

#include <slirp/libslirp.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int tun;
static Slirp *slirp;

static int64_t now(void *unused)
{
    (void)unused;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

static ssize_t from_stack(const void *frame, size_t length, void *unused)
{
    (void)unused;
    uint8_t reply[FRAME];
    size_t reply_length = frame_to_packet(tun, frame, length, reply);
    if (reply_length)
        slirp_input(slirp, reply, (int)reply_length);
    return (ssize_t)length;
}

static void report_error(const char *message, void *unused)
{
    (void)unused;
    fprintf(stderr, "receiver: libslirp: %s\n", message);
}

// libslirp uses timers only for IPv6 router advertisements, and IPv6 is disabled.
static void *new_timer(SlirpTimerCb callback, void *argument, void *unused)
{
    (void)callback, (void)argument, (void)unused;
    return malloc(1);
}

static void free_timer(void *timer, void *unused)
{
    (void)unused;
    free(timer);
}

static void set_timer(void *timer, int64_t at, void *unused)
{
    (void)timer, (void)at, (void)unused;
}

// The descriptors are collected before each poll, so there is nothing to register.
static void poll_descriptor(int fd, void *unused)
{
    (void)fd, (void)unused;
}

static void wake(void *unused)
{
    (void)unused;
}

static const SlirpCb callbacks = {
    .send_packet = from_stack,
    .guest_error = report_error,
    .clock_get_ns = now,
    .timer_new = new_timer,
    .timer_free = free_timer,
    .timer_mod = set_timer,
    .register_poll_fd = poll_descriptor,
    .unregister_poll_fd = poll_descriptor,
    .notify = wake,
};

static struct pollfd polled[64];
static int polled_count;

static const struct {
    int slirp;
    short poll;
} events[] = {
    {SLIRP_POLL_IN, POLLIN},   {SLIRP_POLL_OUT, POLLOUT}, {SLIRP_POLL_PRI, POLLPRI},
    {SLIRP_POLL_ERR, POLLERR}, {SLIRP_POLL_HUP, POLLHUP},
};
enum { EVENTS = sizeof events / sizeof *events };

static int add_poll(int fd, int wanted, void *unused)
{
    (void)unused;
    if (polled_count == sizeof polled / sizeof *polled)
        fail("libslirp has more than %d sockets open", polled_count);
    struct pollfd *entry = &polled[polled_count];
    *entry = (struct pollfd){.fd = fd};
    for (int i = 0; i < EVENTS; i++)
        if (wanted & events[i].slirp)
            entry->events |= events[i].poll;
    return polled_count++;
}

static int poll_result(int index, void *unused)
{
    (void)unused;
    int result = 0;
    for (int i = 0; i < EVENTS; i++)
        if (polled[index].revents & events[i].poll)
            result |= events[i].slirp;
    return result;
}

int main(void)
{
    struct settings settings = read_settings();
    warn_rcvbuf_ignored(&settings, "libslirp's window is fixed");
    tun = open_tun(&settings);
    // With the default buffer, the loopback would hold megabytes before libslirp's window closes.
    start_sink(&settings, 65536);

    SlirpConfig config = {
        .version = 4,
        .in_enabled = true,
        .vnetwork.s_addr = settings.stack.s_addr & settings.netmask.s_addr,
        .vnetmask = settings.netmask,
        .vhost = settings.stack,
        .if_mtu = MTU,
        .if_mru = MTU,
        .disable_dns = true,
        .disable_dhcp = true,
    };
    slirp = slirp_new(&config, &callbacks, NULL);
    if (!slirp)
        fail("libslirp does not start");
    announce(&settings);

    while (!finished()) {
        // The timeout limits the delay until the end of the connection and libslirp's timers are noticed.
        uint32_t timeout = 10;
        polled_count = 0;
        int device = add_poll(tun, SLIRP_POLL_IN, NULL);
        slirp_pollfds_fill(slirp, &timeout, add_poll, NULL);
        int ready = poll(polled, (nfds_t)polled_count, (int)timeout);
        slirp_pollfds_poll(slirp, ready < 0, poll_result, NULL);
        if (ready > 0 && polled[device].revents) {
            uint8_t frame[FRAME];
            size_t length = read_packet(tun, frame + ETHERNET);
            if (length == 0)
                continue;
            watch_from_sender(frame + ETHERNET, length);
            packet_to_frame(frame);
            slirp_input(slirp, frame, (int)(ETHERNET + length));
        }
    }
    return 0;
}

// Shared code of the receivers in C (receiver.h).
#include "receiver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

_Noreturn void fail(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "receiver: %s\n", line);
    _exit(1);
}

void run(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof line)
        fail("command too long: %s ...", line);
    if (system(line) != 0)
        fail("failed: %s", line);
}

static struct in_addr address(const char *name, char text[INET_ADDRSTRLEN])
{
    struct in_addr parsed;
    const char *value = getenv(name);
    if (!value)
        fail("%s is not set", name);
    if (inet_pton(AF_INET, value, &parsed) != 1)
        fail("%s must be an IPv4 address, not %s", name, value);
    inet_ntop(AF_INET, &parsed, text, INET_ADDRSTRLEN);
    return parsed;
}

static int number(const char *name, int minimum, int maximum)
{
    const char *value = getenv(name);
    char *end = NULL;
    if (!value)
        fail("%s is not set", name);
    long parsed = strtol(value, &end, 10);
    if (end == value || *end || parsed < minimum || parsed > maximum)
        fail("%s must be a number from %d to %d, not %s", name, minimum, maximum, value);
    return (int)parsed;
}

struct settings read_settings(void)
{
    struct settings settings = {0};
    settings.stack = address("RECEIVER_ADDR", settings.addr);
    settings.kernel = address("RECEIVER_GATEWAY", settings.gateway);
    settings.prefix = number("RECEIVER_PREFIX", 1, 32);
    settings.netmask.s_addr = htonl(UINT32_MAX << (32 - settings.prefix));
    settings.port = (uint16_t)number("RECEIVER_PORT", 1, UINT16_MAX);
    if (getenv("RECEIVER_RCVBUF"))
        settings.rcvbuf = number("RECEIVER_RCVBUF", 1, 1 << 30);
    // Writing to a closed stdout must return an error, which is then reported.
    signal(SIGPIPE, SIG_IGN);
    return settings;
}

void warn_rcvbuf_ignored(const struct settings *settings, const char *why)
{
    if (settings->rcvbuf)
        fprintf(stderr, "receiver: RECEIVER_RCVBUF=%d is ignored: %s\n", settings->rcvbuf, why);
}

int open_tun(const struct settings *settings)
{
    int tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (tun < 0)
        fail("/dev/net/tun: %s: run as root, or give this user read and write access", strerror(errno));
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strcpy(request.ifr_name, "stack%d");
    if (ioctl(tun, TUNSETIFF, &request) < 0)
        fail("no TUN device in this namespace: %s: CAP_NET_ADMIN is needed", strerror(errno));
    run("ip addr add %s/%d dev %s && ip link set %s mtu %d up", settings->gateway, settings->prefix,
        request.ifr_name, request.ifr_name, MTU);
    return tun;
}

size_t read_packet(int tun, uint8_t packet[MTU])
{
    ssize_t length = read(tun, packet, MTU);
    if (length < 0 && errno != EINTR && errno != EAGAIN)
        fail("reading the TUN device: %s", strerror(errno));
    return length > 0 && packet[0] >> 4 == 4 ? (size_t)length : 0;
}

void write_packet(int tun, const uint8_t *packet, size_t length)
{
    if (write(tun, packet, length) < 0)
        fail("writing the TUN device: %s", strerror(errno));
}

void announce(const struct settings *settings)
{
    fprintf(stderr, "listening on %s port %d\n", settings->addr, settings->port);
}

void write_out(const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno != EINTR)
            fail("writing stdout: %s", strerror(errno));
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        }
    }
}

// passt as a receiver: a TCP without a queue for out-of-order segments. The sender takes the role of its guest.
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

// On passt's stream, each frame follows its length.
enum { LENGTH = 4 };

// passt forwards connections to its gateway's address to the host's loopback. Therefore the stack's address is the
// gateway's, and the kernel's device takes the role of the guest.
static void start_passt(const struct settings *settings, char *const command[], int ours, int theirs)
{
    pid_t parent = getpid();
    if (fork() != 0) {
        close(theirs);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    close(ours);
    // stdout carries only the received data.
    dup2(STDERR_FILENO, STDOUT_FILENO);

    char fd[12], mtu[12], prefix[12];
    snprintf(fd, sizeof fd, "%d", theirs);
    snprintf(mtu, sizeof mtu, "%d", MTU);
    snprintf(prefix, sizeof prefix, "%d", settings->prefix);
    // --runas: a user namespace may lack the user nobody. --interface: this namespace has no default route.
    const char *options[] = {
        "--foreground", "--quiet", "--ipv4-only", "--runas", "0:0", "--fd", fd, "--mtu", mtu, "--interface", "lo",
        "--mac-addr", "02:00:00:00:00:02", "--address", settings->gateway, "--netmask", prefix,
        "--gateway", settings->addr,
    };
    enum { OPTIONS = sizeof options / sizeof *options, COMMAND = 8 };
    char *arguments[COMMAND + OPTIONS + 1] = {0};
    int count = 0;
    while (command[count] && count < COMMAND) {
        arguments[count] = command[count];
        count++;
    }
    memcpy(arguments + count, options, sizeof options);
    execvp(arguments[0], arguments);
    fail("%s: %s", arguments[0], strerror(errno));
}

// Waits until passt answers an ARP request for the gateway.
static void wait_for_passt(const struct settings *settings, int stream)
{
    uint8_t request[LENGTH + FRAME];
    size_t length = arp_request(settings, request + LENGTH);
    uint32_t prefix = htonl((uint32_t)length);
    memcpy(request, &prefix, LENGTH);
    struct pollfd polled = {.fd = stream, .events = POLLIN};
    if (send(stream, request, LENGTH + length, 0) < 0 || poll(&polled, 1, 10000) != 1 ||
        recv(stream, request, 1, MSG_PEEK) != 1)
        fail("passt does not start; its error messages, if any, are above");
}

static void send_packet(int stream, int tun)
{
    uint8_t message[LENGTH + FRAME];
    size_t packet = read_packet(tun, message + LENGTH + ETHERNET);
    if (packet == 0)
        return;
    watch_from_sender(message + LENGTH + ETHERNET, packet);
    packet_to_frame(message + LENGTH);
    uint32_t length = htonl((uint32_t)(ETHERNET + packet));
    memcpy(message, &length, LENGTH);
    if (send(stream, message, LENGTH + ETHERNET + packet, 0) < 0)
        fail("passt has ended: %s", strerror(errno));
}

// Reads from the stream and passes complete frames on.
static void take_frames(int stream, int tun)
{
    static uint8_t buffer[65536 + LENGTH + FRAME];
    static size_t held;
    ssize_t more = recv(stream, buffer + held, sizeof buffer - held, 0);
    if (more <= 0)
        fail("passt has ended%s%s", more < 0 ? ": " : "", more < 0 ? strerror(errno) : "");
    held += (size_t)more;

    size_t at = 0;
    for (;;) {
        uint32_t length;
        if (held - at < LENGTH)
            break;
        memcpy(&length, buffer + at, LENGTH);
        length = ntohl(length);
        if (length > FRAME)
            fail("passt sent a frame of %u bytes, the MTU is %d", length, MTU);
        if (held - at < LENGTH + length)
            break;
        uint8_t reply[LENGTH + FRAME];
        size_t answer = frame_to_packet(tun, buffer + at + LENGTH, length, reply + LENGTH);
        if (answer) {
            uint32_t prefix = htonl((uint32_t)answer);
            memcpy(reply, &prefix, LENGTH);
            send(stream, reply, LENGTH + answer, 0);
        }
        at += LENGTH + length;
    }
    held -= at;
    memmove(buffer, buffer + at, held);
}

int main(int argc, char *argv[])
{
    if (argc < 2)
        fail("usage: %s PASST [ARGUMENT...]", argv[0]);
    struct settings settings = read_settings();
    int ends[2];
    int tun = open_tun(&settings);
    // passt's window is the capacity of its connection to the receiving thread.
    start_sink(&settings, settings.rcvbuf);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        fail("socketpair: %s", strerror(errno));
    start_passt(&settings, argv + 1, ends[0], ends[1]);
    wait_for_passt(&settings, ends[0]);
    announce(&settings);

    while (!finished()) {
        struct pollfd polled[] = {{.fd = tun, .events = POLLIN}, {.fd = ends[0], .events = POLLIN}};
        // The timeout limits the delay until the end of the connection is noticed.
        if (poll(polled, 2, 10) <= 0)
            continue;
        if (polled[0].revents)
            send_packet(ends[0], tun);
        if (polled[1].revents)
            take_frames(ends[0], tun);
    }
    return 0;
}

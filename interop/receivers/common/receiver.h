// What every receiver in C shares: its environment, its device, and where the bytes go (README.md).
#ifndef RECEIVER_H
#define RECEIVER_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

// The MTU of the device, and so the largest packet.
enum { MTU = 1500 };

struct settings {
    char addr[INET_ADDRSTRLEN], gateway[INET_ADDRSTRLEN];
    struct in_addr stack, kernel; // the same two, as numbers
    struct in_addr netmask;
    int prefix;
    uint16_t port;
    int rcvbuf; // 0: what the stack takes by itself
};

struct settings read_settings(void);

// For stacks whose window is fixed when they are built.
void warn_rcvbuf_ignored(const struct settings *settings, const char *why);

// A TUN device of any free name, the kernel's side configured.
int open_tun(const struct settings *settings);

// One IPv4 packet; 0 for anything else that the kernel sends (router solicitations).
size_t read_packet(int tun, uint8_t packet[MTU]);
void write_packet(int tun, const uint8_t *packet, size_t length);

// The line for which the caller waits.
void announce(const struct settings *settings);

// Blocks while stdout is full.
void write_out(const uint8_t *bytes, size_t length);

// Runs a command line of sh; fails when it fails.
void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

// One line on stderr, exit 1.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

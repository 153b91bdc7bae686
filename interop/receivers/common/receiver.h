// Shared code of the receivers in C: environment, device and output. The contract is in interop/receivers/README.md.
#ifndef RECEIVER_H
#define RECEIVER_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

// MTU of the device, which is also the size of the largest packet.
enum { MTU = 1500 };

struct settings {
    char addr[INET_ADDRSTRLEN], gateway[INET_ADDRSTRLEN];
    struct in_addr stack, kernel; // `addr` and `gateway` in binary form
    struct in_addr netmask;
    int prefix;
    uint16_t port;
    int rcvbuf; // 0: the default of the stack
};

struct settings read_settings(void);

// Warns that the stack has a fixed window, if RECEIVER_RCVBUF is set.
void warn_rcvbuf_ignored(const struct settings *settings, const char *why);

// Creates a TUN device with a free name and configures the kernel's side.
int open_tun(const struct settings *settings);

// Reads one packet. Returns 0 for packets other than IPv4, such as router solicitations.
size_t read_packet(int tun, uint8_t packet[MTU]);
void write_packet(int tun, const uint8_t *packet, size_t length);

// Prints the line for which the caller waits.
void announce(const struct settings *settings);

// Writes to stdout. Blocks while stdout is full.
void write_out(const uint8_t *bytes, size_t length);

// Runs a shell command. Exits if the command fails.
void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Prints a line on stderr and exits with 1.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

// For the NAT stacks slirp and passt. They terminate the sender's connection and open their own to 127.0.0.1. This
// program takes the role of their guest on an emulated Ethernet. A thread receives the data.
#ifndef GUEST_H
#define GUEST_H

#include "receiver.h"

#include <stdbool.h>

enum { ETHERNET = 14, FRAME = ETHERNET + MTU };

// Starts the thread that listens on 127.0.0.1, accepts one connection and writes the received data to stdout.
void start_sink(const struct settings *settings, int rcvbuf);

// Writes an ARP request for the stack's address. Returns the length of the frame.
size_t arp_request(const struct settings *settings, uint8_t frame[FRAME]);

// Writes an Ethernet header before the packet at frame + ETHERNET.
void packet_to_frame(uint8_t *frame);

// Handles a frame from the stack. An IPv4 packet goes to the TUN device. For an ARP request, writes the answer to `reply`
// and returns its length. Returns 0 otherwise.
size_t frame_to_packet(int tun, const uint8_t *frame, size_t length, uint8_t reply[FRAME]);

// Tracks the sender's side of the connection by its packets. Exits if the sender resets the connection.
void watch_from_sender(const uint8_t *packet, size_t length);

// Whether all data is written, and our FIN is acknowledged or a second has passed.
bool finished(void);

#endif

// For stacks that are a NAT's (slirp, passt): they end the sender's connection and open one of their own to
// 127.0.0.1. Our packets play their guest, on an Ethernet that ends here; a thread takes the bytes.
#ifndef GUEST_H
#define GUEST_H

#include "receiver.h"

#include <stdbool.h>

enum { ETHERNET = 14, FRAME = ETHERNET + MTU };

// The bytes' end: listens on 127.0.0.1, takes one connection, writes it out.
void start_sink(const struct settings *settings, int rcvbuf);

// The frame that asks the stack for the link address of its own IPv4 address; its length.
size_t arp_question(const struct settings *settings, uint8_t frame[FRAME]);

// Puts an Ethernet header before the packet that stands at frame + ETHERNET.
void packet_to_frame(uint8_t *frame);

// Takes a frame from the stack: its packet goes to the TUN device. If it asks for a link address instead, the answer
// is left in `reply` and its length returned; 0 otherwise.
size_t frame_to_packet(int tun, const uint8_t *frame, size_t length, uint8_t reply[FRAME]);

// The sender's side of the connection, as its packets tell; fails when it is reset.
void watch_from_sender(const uint8_t *packet, size_t length);

// Whether everything is written, and our FIN acknowledged or given up.
bool finished(void);

#endif

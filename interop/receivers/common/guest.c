// The guest of a NAT stack (guest.h): Ethernet, the receiving thread, and the end of the connection.
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const uint8_t guest_mac[ETHER_ADDR_LEN] = {0x02, 0, 0, 0, 0, 0x01};
static uint8_t stack_mac[ETHER_ADDR_LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static atomic_bool written;
static bool fin_taken, fin_sent, fin_acked;
static uint32_t after_fin; // sequence number after the stack's FIN

static void *take_bytes(void *argument)
{
    int listener = *(int *)argument;
    int connection = accept(listener, NULL, NULL);
    if (connection < 0)
        fail("the sink cannot accept: %s", strerror(errno));
    close(listener);
    static uint8_t bytes[65536];
    ssize_t length;
    while ((length = read(connection, bytes, sizeof bytes)) > 0)
        write_out(bytes, (size_t)length);
    if (length < 0)
        fail("the connection broke: %s", strerror(errno));
    close(connection);
    atomic_store(&written, true);
    return NULL;
}

void start_sink(const struct settings *settings, int rcvbuf)
{
    static int listener;
    struct sockaddr_in here = {
        .sin_family = AF_INET,
        .sin_port = htons(settings->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    pthread_t thread;

    run("ip link set lo up");
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (rcvbuf && setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf) < 0)
        fail("SO_RCVBUF %d: %s", rcvbuf, strerror(errno));
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, 1) < 0)
        fail("127.0.0.1 port %d of this namespace: %s", settings->port, strerror(errno));
    if (pthread_create(&thread, NULL, take_bytes, &listener) != 0)
        fail("cannot start the receiving thread");
}

void packet_to_frame(uint8_t *frame)
{
    struct ether_header *header = (struct ether_header *)frame;
    memcpy(header->ether_dhost, stack_mac, ETHER_ADDR_LEN);
    memcpy(header->ether_shost, guest_mac, ETHER_ADDR_LEN);
    header->ether_type = htons(ETHERTYPE_IP);
}

static size_t arp_frame(uint8_t *frame, int operation, const void *our_address, const uint8_t *mac, const void *address)
{
    struct ether_header *header = (struct ether_header *)frame;
    memcpy(header->ether_dhost, mac, ETHER_ADDR_LEN);
    memcpy(header->ether_shost, guest_mac, ETHER_ADDR_LEN);
    header->ether_type = htons(ETHERTYPE_ARP);

    struct ether_arp *arp = (struct ether_arp *)(frame + ETHERNET);
    arp->arp_hrd = htons(ARPHRD_ETHER);
    arp->arp_pro = htons(ETHERTYPE_IP);
    arp->arp_hln = ETHER_ADDR_LEN;
    arp->arp_pln = sizeof(struct in_addr);
    arp->arp_op = htons((uint16_t)operation);
    memcpy(arp->arp_sha, guest_mac, ETHER_ADDR_LEN);
    memcpy(arp->arp_spa, our_address, sizeof(struct in_addr));
    memcpy(arp->arp_tha, mac, ETHER_ADDR_LEN);
    memcpy(arp->arp_tpa, address, sizeof(struct in_addr));
    return ETHERNET + sizeof *arp;
}

size_t arp_request(const struct settings *settings, uint8_t frame[FRAME])
{
    return arp_frame(frame, ARPOP_REQUEST, &settings->kernel, stack_mac, &settings->stack);
}

// The guest answers for every address, because it is the stack's route to the sender. A gratuitous ARP request needs no
// answer.
static size_t answer_arp(const uint8_t *frame, uint8_t reply[FRAME])
{
    const struct ether_arp *arp = (const struct ether_arp *)(frame + ETHERNET);
    if (ntohs(arp->arp_op) != ARPOP_REQUEST || !memcmp(arp->arp_spa, arp->arp_tpa, sizeof(struct in_addr)))
        return 0;
    return arp_frame(reply, ARPOP_REPLY, arp->arp_tpa, arp->arp_sha, arp->arp_spa);
}

static const struct tcphdr *tcp_header(const uint8_t *packet, size_t length)
{
    const struct iphdr *ip = (const struct iphdr *)packet;
    size_t offset = (size_t)ip->ihl * 4;
    bool tcp = length >= sizeof *ip && ip->protocol == IPPROTO_TCP && length >= offset + sizeof(struct tcphdr);
    return tcp ? (const struct tcphdr *)(packet + offset) : NULL;
}

static void watch_from_stack(const uint8_t *packet, size_t length)
{
    const struct tcphdr *tcp = tcp_header(packet, length);
    if (!tcp || !tcp->fin)
        return;
    const struct iphdr *ip = (const struct iphdr *)packet;
    after_fin = ntohl(tcp->seq) + ntohs(ip->tot_len) - ip->ihl * 4 - tcp->doff * 4 + 1;
    fin_sent = true;
}

void watch_from_sender(const uint8_t *packet, size_t length)
{
    const struct tcphdr *tcp = tcp_header(packet, length);
    if (!tcp)
        return;
    if (tcp->rst && !fin_taken)
        fail("the peer reset the connection");
    if (tcp->fin)
        fin_taken = true;
    if (fin_sent && tcp->ack && ntohl(tcp->ack_seq) == after_fin)
        fin_acked = true;
}

size_t frame_to_packet(int tun, const uint8_t *frame, size_t length, uint8_t reply[FRAME])
{
    const struct ether_header *header = (const struct ether_header *)frame;
    if (length >= ETHERNET + sizeof(struct ether_arp) && header->ether_type == htons(ETHERTYPE_ARP))
        return answer_arp(frame, reply);
    if (length <= ETHERNET || header->ether_type != htons(ETHERTYPE_IP))
        return 0;
    memcpy(stack_mac, header->ether_shost, ETHER_ADDR_LEN);
    watch_from_stack(frame + ETHERNET, length - ETHERNET);
    write_packet(tun, frame + ETHERNET, length - ETHERNET);
    return 0;
}

bool finished(void)
{
    static time_t since;
    if (!atomic_load(&written))
        return false;
    if (since == 0)
        since = time(NULL);
    return fin_acked || time(NULL) > since + 1;
}

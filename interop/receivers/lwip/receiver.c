// lwIP as a receiver: its socket interface on a netif that is a TUN device.
// This file is linked with Debian's library (lwip), and with a library built with SACK and timestamps (lwip-sack).
#include "receiver.h"

#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/sockets.h>
#include <lwip/tcpip.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static int tun;
static struct netif netif;

static err_t output(struct netif *interface, struct pbuf *packet, const ip4_addr_t *next_hop)
{
    (void)interface, (void)next_hop;
    uint8_t bytes[MTU];
    write_packet(tun, bytes, pbuf_copy_partial(packet, bytes, sizeof bytes, 0));
    return ERR_OK;
}

static err_t set_up(struct netif *interface)
{
    memcpy(interface->name, "tu", 2);
    interface->mtu = MTU;
    interface->output = output;
    return ERR_OK;
}

// Passes packets to lwIP under the core lock, because the mailbox of tcpip_input drops packets when it is full.
static void *take_packets(void *unused)
{
    (void)unused;
    for (;;) {
        uint8_t bytes[MTU];
        size_t length = read_packet(tun, bytes);
        if (length == 0)
            continue;
        LOCK_TCPIP_CORE();
        // Not PBUF_POOL: in Debian's build, a burst of these corrupts the heap.
        struct pbuf *packet = pbuf_alloc(PBUF_RAW, (u16_t)length, PBUF_RAM);
        if (!packet)
            fail("lwIP has no memory for a packet");
        pbuf_take(packet, bytes, (u16_t)length);
        if (netif.input(packet, &netif) != ERR_OK)
            pbuf_free(packet);
        UNLOCK_TCPIP_CORE();
    }
}

static void start_stack(const struct settings *settings)
{
    ip4_addr_t address = {settings->stack.s_addr};
    ip4_addr_t netmask = {settings->netmask.s_addr};
    ip4_addr_t gateway = {settings->kernel.s_addr};
    pthread_t thread;

    tcpip_init(NULL, NULL);
    LOCK_TCPIP_CORE();
    netif_add(&netif, &address, &netmask, &gateway, NULL, set_up, ip_input);
    netif_set_default(&netif);
    netif_set_link_up(&netif);
    netif_set_up(&netif);
    UNLOCK_TCPIP_CORE();
    if (pthread_create(&thread, NULL, take_packets, NULL) != 0)
        fail("cannot start the thread for the device");
}

// Waits until our FIN is acknowledged, for at most a second.
static void wait_for_close(void)
{
    for (int i = 0; i < 100; i++) {
        LOCK_TCPIP_CORE();
        int open = tcp_active_pcbs != NULL;
        UNLOCK_TCPIP_CORE();
        if (!open)
            return;
        usleep(10000);
    }
}

int main(void)
{
    struct settings settings = read_settings();
    warn_rcvbuf_ignored(&settings, "lwIP's window (TCP_WND) is fixed when it is built");
    tun = open_tun(&settings);
    start_stack(&settings);

    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(settings.port)};
    int listener = lwip_socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || lwip_bind(listener, (struct sockaddr *)&here, sizeof here) < 0 ||
        lwip_listen(listener, 1) < 0)
        fail("lwIP cannot listen: %s", strerror(errno));
    announce(&settings);
    int connection = lwip_accept(listener, NULL, NULL);
    if (connection < 0)
        fail("lwIP cannot accept: %s", strerror(errno));
    lwip_close(listener);

    static uint8_t bytes[65536];
    ssize_t length;
    while ((length = lwip_recv(connection, bytes, sizeof bytes, 0)) > 0)
        write_out(bytes, (size_t)length);
    if (length < 0)
        fail("the connection broke: %s", strerror(errno));
    lwip_close(connection);
    wait_for_close();
    // Not exit: lwIP's thread still runs.
    _exit(0);
}

// Debian's configuration of lwIP, and the two options of TCP that it leaves off.
#include_next <lwipopts.h>

#define LWIP_TCP_SACK_OUT 1
#define LWIP_TCP_TIMESTAMPS 1

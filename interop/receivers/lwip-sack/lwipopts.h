// Debian's configuration of lwIP, plus the two TCP options that it disables.
#include_next <lwipopts.h>

#define LWIP_TCP_SACK_OUT 1
#define LWIP_TCP_TIMESTAMPS 1

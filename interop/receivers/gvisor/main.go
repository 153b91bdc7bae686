// gVisor's netstack as a receiver. The contract is in interop/receivers/README.md.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	mtu = 1500
	nic = 1
)

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "receiver: "+format+"\n", args...)
	os.Exit(1)
}

type settings struct {
	addr, gateway net.IP
	prefix, port  int
	rcvbuf        int // 0: the default of the stack
}

func address(name string) net.IP {
	ip := net.ParseIP(os.Getenv(name)).To4()
	if ip == nil {
		fail("%s must be an IPv4 address, not %q", name, os.Getenv(name))
	}
	return ip
}

func number(name string, minimum, maximum int) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < minimum || n > maximum {
		fail("%s must be a number from %d to %d, not %q", name, minimum, maximum, os.Getenv(name))
	}
	return n
}

func readSettings() settings {
	s := settings{
		addr:    address("RECEIVER_ADDR"),
		gateway: address("RECEIVER_GATEWAY"),
		prefix:  number("RECEIVER_PREFIX", 1, 32),
		port:    number("RECEIVER_PORT", 1, 65535),
	}
	if os.Getenv("RECEIVER_RCVBUF") != "" {
		s.rcvbuf = number("RECEIVER_RCVBUF", 1, 1<<30)
	}
	return s
}

// openTun creates a TUN device with a free name and configures the kernel's side.
func openTun(s settings) int {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		fail("/dev/net/tun: %v: run as root, or give this user read and write access", err)
	}
	request, err := unix.NewIfreq("stack%d")
	if err != nil {
		fail("the name of the TUN device: %v", err)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		fail("no TUN device in this namespace: %v: CAP_NET_ADMIN is needed", err)
	}
	name := request.Name()
	for _, args := range [][]string{
		{"addr", "add", fmt.Sprintf("%s/%d", s.gateway, s.prefix), "dev", name},
		{"link", "set", name, "mtu", strconv.Itoa(mtu), "up"},
	} {
		if output, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			fail("ip %v: %v: %s", args, err, output)
		}
	}
	return fd
}

func must(what string, err tcpip.Error) {
	if err != nil {
		fail("%s: %s", what, err)
	}
}

func newStack(tun int, s settings) *stack.Stack {
	link, err := fdbased.New(&fdbased.Options{
		FDs:                []int{tun},
		MTU:                mtu,
		PacketDispatchMode: fdbased.Readv,
	})
	if err != nil {
		fail("the stack rejects the TUN device: %v", err)
	}
	st := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	must("SACK", st.SetTransportProtocolOption(tcp.ProtocolNumber, &sack))
	// Automatic tuning as in the gVisor runtime, or a fixed buffer if one is configured.
	moderate := tcpip.TCPModerateReceiveBufferOption(s.rcvbuf == 0)
	must("receive buffer", st.SetTransportProtocolOption(tcp.ProtocolNumber, &moderate))
	if s.rcvbuf != 0 {
		size := tcpip.TCPReceiveBufferSizeRangeOption{Min: 1, Default: s.rcvbuf, Max: s.rcvbuf}
		must("receive buffer", st.SetTransportProtocolOption(tcp.ProtocolNumber, &size))
	}
	must("device", st.CreateNIC(nic, link))
	must("address", st.AddProtocolAddress(nic, tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{
			Address:   tcpip.AddrFromSlice(s.addr),
			PrefixLen: s.prefix,
		},
	}, stack.AddressProperties{}))
	st.SetRouteTable([]tcpip.Route{{
		Destination: header.IPv4EmptySubnet,
		Gateway:     tcpip.AddrFromSlice(s.gateway),
		NIC:         nic,
	}})
	return st
}

func main() {
	// Writing to a closed stdout must return an error, which is then reported.
	signal.Ignore(syscall.SIGPIPE)
	s := readSettings()
	st := newStack(openTun(s), s)
	here := tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFromSlice(s.addr), Port: uint16(s.port)}
	listener, err := gonet.ListenTCP(st, here, ipv4.ProtocolNumber)
	if err != nil {
		fail("gVisor cannot listen: %v", err)
	}
	fmt.Fprintf(os.Stderr, "listening on %s port %d\n", s.addr, s.port)
	connection, err := listener.Accept()
	if err != nil {
		fail("gVisor cannot accept: %v", err)
	}
	listener.Close()
	if _, err := io.Copy(os.Stdout, connection); err != nil {
		fail("copying from the connection to stdout: %v", err)
	}
	connection.Close()
	// Wait until our FIN is acknowledged, for at most a second.
	for end := time.Now().Add(time.Second); time.Now().Before(end) && st.Stats().TCP.CurrentConnected.Value() != 0; {
		time.Sleep(10 * time.Millisecond)
	}
}

// A sender on gVisor's netstack with GSO: a candidate of airtcp-throughput. It uses an address of the
// interface that the kernel does not have, and sends until it is killed.
//
//	gvisor-sender INTERFACE ADDRESS REMOTE PORT
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	nic = 1
	// Maximum size of a GSO packet, and size of a write, as in the benchmark's other senders.
	largest = 1 << 16
	// Size of the socket buffers, as in the benchmark's other senders.
	buffer = 16 << 20
)

func check(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "gvisor-sender: %s: %v\n", what, err)
		os.Exit(1)
	}
}

func must(what string, err tcpip.Error) {
	if err != nil {
		check(what, fmt.Errorf("%s", err))
	}
}

// openPackets opens a socket for all frames of the interface. The header in front of each frame tells the
// device how to segment it.
func openPackets(wire *net.Interface) int {
	all := int(unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	check("a packet socket", err)
	check("PACKET_VNET_HDR", unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1))
	check("SO_SNDBUFFORCE", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer))
	check("SO_RCVBUFFORCE", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer))
	address := unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: wire.Index}
	check("binding to "+wire.Name, unix.Bind(fd, &address))
	return fd
}

func newStack(wire *net.Interface, here tcpip.Address) *stack.Stack {
	link, err := fdbased.New(&fdbased.Options{
		FDs:                []int{openPackets(wire)},
		MTU:                uint32(wire.MTU),
		EthernetHeader:     true,
		Address:            tcpip.LinkAddress(wire.HardwareAddr),
		PacketDispatchMode: fdbased.RecvMMsg,
		GSOMaxSize:         largest,
		RXChecksumOffload:  true,
	})
	check("the stack does not take the interface", err)
	st := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	must("SACK", st.SetTransportProtocolOption(tcp.ProtocolNumber, &sack))
	cubic := tcpip.CongestionControlOption("cubic")
	must("cubic", st.SetTransportProtocolOption(tcp.ProtocolNumber, &cubic))
	size := tcpip.TCPSendBufferSizeRangeOption{Min: 1, Default: buffer, Max: buffer}
	must("send buffer", st.SetTransportProtocolOption(tcp.ProtocolNumber, &size))
	must("device", st.CreateNIC(nic, link))
	must("address", st.AddProtocolAddress(nic, tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: here, PrefixLen: 24},
	}, stack.AddressProperties{}))
	st.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return st
}

func address(text string) tcpip.Address {
	ip := net.ParseIP(text).To4()
	if ip == nil {
		check("the arguments", fmt.Errorf("%q is no IPv4 address", text))
	}
	return tcpip.AddrFromSlice(ip)
}

func main() {
	if len(os.Args) != 5 {
		check("the arguments", fmt.Errorf("INTERFACE ADDRESS REMOTE PORT are wanted"))
	}
	wire, err := net.InterfaceByName(os.Args[1])
	check("the interface", err)
	port, err := strconv.ParseUint(os.Args[4], 10, 16)
	check("the port", err)
	st := newStack(wire, address(os.Args[2]))
	remote := tcpip.FullAddress{NIC: nic, Addr: address(os.Args[3]), Port: uint16(port)}
	connection, err := gonet.DialContextTCP(context.Background(), st, remote, ipv4.ProtocolNumber)
	check("connecting", err)
	chunk := make([]byte, largest)
	for {
		_, err := connection.Write(chunk)
		check("writing", err)
	}
}

// P0's network (Pan, Mark, Shen, Figs. 3 and 4) for ns-3, as `../ns2/p0.tcl` describes it for ns-2.
//
//   p0 SECONDS SEED
//
// Prints the number of data packets sent and the number delivered in order.
#include <cstdlib>
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-helper.h"

using namespace ns3;

namespace {

// Packets have 512 bytes on the wire.
constexpr uint32_t MSS = 472;
constexpr uint32_t VOICE_PAYLOAD = 512 - 28;
uint64_t dataPackets = 0;

NetDeviceContainer Link(Ptr<Node> from, Ptr<Node> to, const char* rate, const char* delay) {
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100p"));
    return link.Install(from, to);
}

Ipv4InterfaceContainer Number(const NetDeviceContainer& devices, const char* network) {
    Ipv4AddressHelper addresses(network, "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    // The drop-tail queue of the device is the only queue.
    TrafficControlHelper().Uninstall(devices);
    return interfaces;
}

void Route(Ptr<Node> node, Ipv4Address destination, Ipv4Address hop, uint32_t interface) {
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(node->GetObject<Ipv4>())->AddHostRouteTo(destination, hop, interface);
}

void CountDataPacket(Ptr<const Packet> packet, const TcpHeader&, Ptr<const TcpSocketBase>) {
    dataPackets += packet->GetSize() > 0;
}

void CountDataPacketsOf(Ptr<BulkSendApplication> application) {
    application->GetSocket()->TraceConnectWithoutContext("Tx", MakeCallback(&CountDataPacket));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: p0 SECONDS SEED\n";
        return 2;
    }
    const double seconds = std::atof(argv[1]);
    RngSeedManager::SetRun(std::strtoull(argv[2], nullptr, 10));

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(16 * MSS));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(100)));

    NodeContainer nodes(4);
    Ptr<Node> correspondent = nodes.Get(0), home = nodes.Get(1), foreign = nodes.Get(2), mobile = nodes.Get(3);
    InternetStackHelper().Install(nodes);
    const NetDeviceContainer radio = Link(foreign, mobile, "128kbps", "25ms");
    const Ipv4InterfaceContainer toHome = Number(Link(correspondent, home, "1Mbps", "5ms"), "10.0.0.0");
    const Ipv4InterfaceContainer toForeign = Number(Link(home, foreign, "1Mbps", "5ms"), "10.0.1.0");
    const Ipv4InterfaceContainer back = Number(Link(foreign, correspondent, "1Mbps", "5ms"), "10.0.2.0");
    const Ipv4InterfaceContainer air = Number(radio, "10.0.3.0");

    // Mobile IP: packets to the mobile pass its home agent; packets from the mobile go directly to
    // the correspondent.
    const Ipv4Address sender = toHome.GetAddress(0), receiver = air.GetAddress(1);
    Route(correspondent, receiver, toHome.GetAddress(1), toHome.Get(0).second);
    Route(home, receiver, toForeign.GetAddress(1), toForeign.Get(0).second);
    Route(mobile, sender, air.GetAddress(0), air.Get(1).second);
    Route(foreign, sender, back.GetAddress(1), back.Get(0).second);

    Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
    errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    errors->SetRate(0.08);
    radio.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));

    const InetSocketAddress data(receiver, 5000), voice(receiver, 5001);
    BulkSendHelper bulk("ns3::TcpSocketFactory", data);
    bulk.SetAttribute("SendSize", UintegerValue(MSS));
    const ApplicationContainer source = bulk.Install(correspondent);
    const ApplicationContainer sink = PacketSinkHelper("ns3::TcpSocketFactory", data).Install(mobile);
    PacketSinkHelper("ns3::UdpSocketFactory", voice).Install(mobile);
    // Voice traffic enters at the foreign agent: 512 bytes in 64 ms are 64 kbit/s.
    UdpClientHelper calls(voice);
    calls.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
    calls.SetAttribute("Interval", TimeValue(MilliSeconds(64)));
    calls.SetAttribute("PacketSize", UintegerValue(VOICE_PAYLOAD));
    calls.Install(foreign);

    Simulator::Schedule(MicroSeconds(1), &CountDataPacketsOf, DynamicCast<BulkSendApplication>(source.Get(0)));
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << dataPackets << " " << DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx() / MSS << "\n";
    Simulator::Destroy();
}

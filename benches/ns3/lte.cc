// One CUBIC flow over ns-3's LTE with RLC AM: one terminal, 50 resource blocks, 10 ms between the server and the core
// network. Prints the number of data packets that arrive.
//   lte SECONDS SEED
#include <cstdlib>
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

int main(int argc, char* argv[]) {
    if (argc != 3) return 2;
    const double seconds = std::atof(argv[1]);
    RngSeedManager::SetRun(std::atoi(argv[2]));
    const uint32_t mss = 1448;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
    // The default of 10 kB would lose most packets.
    Config::SetDefault("ns3::LteRlcAm::MaxTxBufferSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::LteEnbRrc::EpsBearerToRlcMapping", StringValue("RlcAmAlways"));

    auto lte = CreateObject<LteHelper>();
    auto core = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(core);
    lte->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(50));
    lte->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(50));

    NodeContainer servers(1), stations(1), terminals(1);
    InternetStackHelper internet;
    internet.Install(servers);
    internet.Install(terminals);
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    wire.SetDeviceAttribute("Mtu", UintegerValue(1500));
    wire.SetChannelAttribute("Delay", StringValue("10ms"));
    auto devices = wire.Install(core->GetPgwNode(), servers.Get(0));
    Ipv4AddressHelper addresses("1.0.0.0", "255.0.0.0");
    addresses.Assign(devices);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(servers.Get(0)->GetObject<Ipv4>())
        ->AddNetworkRouteTo(Ipv4Address("7.0.0.0"), Ipv4Mask("255.0.0.0"), 1);

    MobilityHelper mobility;
    auto positions = CreateObject<ListPositionAllocator>();
    positions->Add(Vector(0, 0, 0));
    positions->Add(Vector(50, 0, 0));
    mobility.SetPositionAllocator(positions);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(stations);
    mobility.Install(terminals);
    auto station = lte->InstallEnbDevice(stations);
    auto terminal = lte->InstallUeDevice(terminals);
    auto interfaces = core->AssignUeIpv4Address(terminal);
    routing.GetStaticRouting(terminals.Get(0)->GetObject<Ipv4>())
        ->SetDefaultRoute(core->GetUeDefaultGatewayAddress(), 1);
    lte->Attach(terminal.Get(0), station.Get(0));

    const uint16_t port = 9000;
    PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    auto sink = sinks.Install(terminals.Get(0));
    BulkSendHelper sources("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(0), port));
    sources.SetAttribute("MaxBytes", UintegerValue(0));
    auto source = sources.Install(servers.Get(0));
    source.Start(MilliSeconds(100));
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx() / mss << std::endl;
    Simulator::Destroy();
}

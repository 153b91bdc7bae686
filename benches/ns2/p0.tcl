# P0's network (Pan, Mark, Shen, Figs. 3 and 4) for ns-2. `p0.toml` describes the same network for airlink.
#
#   ns p0.tcl SECONDS SEED
#
# Prints the number of data packets sent and the number delivered in order.
set seconds [lindex $argv 0]
ns-random [lindex $argv 1]

set ns [new Simulator]
foreach name {correspondent home foreign mobile} { set $name [$ns node] }
# Mobile IP: packets to the mobile pass its home agent; packets from the mobile go directly to the
# correspondent.
$ns simplex-link $correspondent $home 1Mb 5ms DropTail
$ns simplex-link $home $foreign 1Mb 5ms DropTail
$ns simplex-link $foreign $correspondent 1Mb 5ms DropTail
$ns duplex-link $foreign $mobile 128kb 25ms DropTail
foreach {from to} [list $correspondent $home $home $foreign $foreign $correspondent $foreign $mobile $mobile $foreign] {
    $ns queue-limit $from $to 100
}

# Error model and random variable are C++ objects, so no packet runs Tcl code. With two equal states, P0's
# loss model is the same as this one.
set errors [new ErrorModel]
$errors unit pkt
$errors set rate_ 0.08
$errors ranvar [new RandomVariable/Uniform]
$errors drop-target [new Agent/Null]
$ns link-lossmodel $errors $foreign $mobile

# Packets have 512 bytes on the wire.
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 512
Agent/TCP set window_ 16
Agent/TCP set windowInit_ 1
Agent/TCP set singledup_ 0
Agent/TCP set tcpTick_ 0.1
Agent/TCP set minrto_ 0.2
Agent/TCPSink/DelAck set interval_ 200ms

set sender [new Agent/TCP/Newreno]
set sink [new Agent/TCPSink/DelAck]
$ns attach-agent $correspondent $sender
$ns attach-agent $mobile $sink
$ns connect $sender $sink
set ftp [new Application/FTP]
$ftp attach-agent $sender

# Voice traffic enters at the foreign agent.
set udp [new Agent/UDP]
set null [new Agent/Null]
$ns attach-agent $foreign $udp
$ns attach-agent $mobile $null
$ns connect $udp $null
set voice [new Application/Traffic/CBR]
$voice set packetSize_ 512
$voice set rate_ 64Kb
$voice attach-agent $udp

$ns at 0.0 "$voice start; $ftp start"
$ns at $seconds "puts \"\[\$sender set ndatapack_\] \[expr \[\$sender set ack_\] + 1\]\"; exit 0"
$ns run

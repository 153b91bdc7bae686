# P0 in reading R1, with uniform losses:
#   ns p0.tcl AGENT RATE SEED SINK WHERE
# AGENT is "" (Tahoe), /Reno, /Newreno or /Sack1. SINK is delayed or each. WHERE is after (packets are lost after the
# link) or before (before its queue). Prints the number of packets acknowledged after 100 s.
foreach {agent rate seed sinks where} $argv {}

set ns [new Simulator]
$defaultRNG seed $seed
set losses [new RNG]
$losses seed [expr $seed * 31 + 7]

foreach node {ch ha fa mh} { set $node [$ns node] }
$ns duplex-link $ch $ha 1Mb 5ms DropTail
$ns duplex-link $ha $fa 1Mb 5ms DropTail
$ns duplex-link $fa $mh 128Kb 25ms DropTail
foreach {a b} [list $ch $ha $ha $fa $fa $mh] { $ns queue-limit $a $b 100; $ns queue-limit $b $a 100 }

foreach {setting value} {
    tcpTick_ 0.1 syn_ 0 delay_growth_ 0 windowInit_ 1 singledup_ 0 minrto_ 0 rtxcur_init_ 6.0 maxrto_ 64
    useHeaders_ false packetSize_ 512 window_ 16
} { Agent/TCP set $setting $value }
set tcp [new Agent/TCP$agent]
set kind [expr {$agent == "/Sack1" ? "/Sack1" : ""}]
if {$sinks == "delayed"} {
    set sink [new Agent/TCPSink$kind/DelAck]
    $sink set interval_ 200ms
} else {
    set sink [new Agent/TCPSink$kind]
}
$tcp set fid_ 1
$ns attach-agent $ch $tcp; $ns attach-agent $mh $sink; $ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

set udp [new Agent/UDP]
set null [new Agent/Null]
$udp set packetSize_ 512
$udp set fid_ 2
$ns attach-agent $ch $udp; $ns attach-agent $mh $null; $ns connect $udp $null
set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ 512
$cbr set rate_ 64kb
$cbr attach-agent $udp

# No voice packets are lost.
set module [new ErrorModule Fid]
foreach {flow per numbers} [list 1 $rate $losses 2 0 [new RNG]] {
    set random [new RandomVariable/Uniform]
    $random use-rng $numbers
    set model [new ErrorModel]
    $model unit pkt
    $model set rate_ $per
    $model ranvar $random
    $model drop-target [new Agent/Null]
    $module insert $model
    $module bind $model $flow
}
if {$where == "after"} {
    [$ns link $fa $mh] insert-linkloss $module
} else {
    [$ns link $fa $mh] errormodule $module
}

$ns at 0.0 "$ftp start"
$ns at 0.0 "$cbr start"
$ns at 100.0 { puts [expr [$tcp set ack_] + 1]; exit 0 }
$ns run

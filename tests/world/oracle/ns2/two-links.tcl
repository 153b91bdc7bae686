# P1's last hop and P3's backbone and dumbbell, with uniform losses of data after the second link:
#   ns two-links.tcl SCENARIO AGENT RATE SEED
# SCENARIO is p1, p3 or twelve. AGENT is "" (Tahoe), /Reno, /Newreno or /Sack1. Prints the goodput in Mbit/s, in which
# a packet counts 1000 bytes: from 0 to 400 s in p1, from 1000 to 2000 s in the others.
foreach {scenario agent rate seed} $argv {}

set ns [new Simulator]
$defaultRNG seed $seed
set losses [new RNG]
$losses seed [expr $seed * 31 + 7]

if {$scenario == "p1"} {
    foreach {setting value} { packetSize_ 960 window_ 20 minrto_ 1 tcpTick_ 0.1 singledup_ 0 } {
        Agent/TCP set $setting $value
    }
    foreach {first second limit from until} {{10Mb 5ms} {0.5Mb 30ms} 20 0 400} {}
} else {
    foreach {setting value} { packetSize_ 1000 window_ 1000 minrto_ 0.2 } { Agent/TCP set $setting $value }
    foreach {first second limit from until} {{10Mb 50ms} {2Mb 10ms} 50 1000 2000} {}
}
set kind [expr {$agent == "/Sack1" ? "/Sack1" : ""}]

proc transfer {from to} {
    global ns agent kind
    set tcp [new Agent/TCP$agent]
    set sink [new Agent/TCPSink$kind]
    $ns attach-agent $from $tcp; $ns attach-agent $to $sink; $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at 0.0 "$ftp start"
    return $tcp
}

proc wire {a b rate_and_delay limit} {
    global ns
    eval $ns duplex-link $a $b $rate_and_delay DropTail
    $ns queue-limit $a $b $limit
    $ns queue-limit $b $a $limit
}

set left [$ns node]
set right [$ns node]
if {$scenario == "twelve"} {
    wire $left $right {2Mb 20ms} $limit
    for {set i 0} {$i < 12} {incr i} {
        set a [$ns node]; set b [$ns node]
        wire $a $left {10Mb 10ms} $limit
        wire $right $b {10Mb 10ms} $limit
        lappend transfers [transfer $a $b]
    }
} else {
    set a [$ns node]
    wire $a $left $first $limit
    wire $left $right $second $limit
    lappend transfers [transfer $a $right]
}

set random [new RandomVariable/Uniform]
$random use-rng $losses
set model [new ErrorModel]
$model unit pkt
$model set rate_ $rate
$model ranvar $random
$model drop-target [new Agent/Null]
[$ns link $left $right] insert-linkloss $model

proc acknowledged {} {
    global transfers
    set sum 0
    foreach tcp $transfers { incr sum [$tcp set ack_] }
    return $sum
}
set before 0
$ns at $from { set before [acknowledged] }
$ns at $until { puts [expr ([acknowledged] - $before) * 8000 / 1e6 / ($until - $from)]; exit 0 }
$ns run

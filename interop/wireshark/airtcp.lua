-- Dissects the marks and reports that base stations and airtcp's receivers write into TCP headers
-- (docs/reference/header-extensions.md), for Wireshark and tshark.
--
-- This is a postdissector: Wireshark's own dissection of TCP does not change.
-- Filters: airtcp, airtcp.ob, airtcp.db, airtcp.cause == "radio", airtcp.loss_rate > 5, airtcp.reordered,
-- airtcp.meaning contains "fixed".

local airtcp = Proto("airtcp", "airtcp: transit marks and reports")

local field = {
    ob = ProtoField.bool("airtcp.ob", "Ob"),
    db = ProtoField.bool("airtcp.db", "Db"),
    meaning = ProtoField.string("airtcp.meaning", "Meaning"),
    cause = ProtoField.string("airtcp.cause", "Cause if the requested byte was lost"),
    loss_rate = ProtoField.double("airtcp.loss_rate", "Loss rate of the radio links, per cent"),
    reordered = ProtoField.uint16("airtcp.reordered", "Segments that arrived reordered (modulo 2^16)"),
}
airtcp.fields = field

local tcp_header = Field.new("tcp")
local tcp_stream = Field.new("tcp.stream")
local quoting = { Field.new("icmp"), Field.new("icmpv6") }

-- Indexed by the bits of a SYN: the path of the data that the SYN's receiver sends, and the bits in the ACKs
-- for this data.
local ANNOUNCED = {
    [0x400] = { path = "fixed → mobile", carry = "Ob" },
    [0x800] = { path = "mobile → fixed", carry = "Ob" },
    [0xc00] = { path = "mobile → mobile", carry = "Ob and Db" },
}

-- Indexed by the path and the bits of an ACK: the cause if the byte that the ACK requests was lost.
local CAUSE = {
    ["fixed → mobile"] = { [0] = "congestion", [0x400] = "congestion", [0x800] = "radio", [0xc00] = "radio" },
    ["mobile → fixed"] = { [0] = "radio", [0x400] = "radio", [0x800] = "congestion", [0xc00] = "congestion" },
    ["mobile → mobile"] = { [0] = "radio", [0x400] = "congestion", [0x800] = "congestion", [0xc00] = "radio" },
}

-- The announcement in the SYN from each end of a connection. It applies to the ACKs from the same end.
local announced = {}

function airtcp.init()
    announced = {}
end

local KIND, LENGTH, LOSS_RATE, REORDERED = 254, 6, 0x7177, 0x7178

-- Returns the positions of both reports in the header, or nothing if the length of an option is illegal (RFC
-- 9293 §3.1).
local function reports(header, length)
    local found, at = {}, 20
    while at < length do
        local kind = header(at, 1):uint()
        if kind == 0 then
            break
        elseif kind == 1 then
            at = at + 1
        else
            local size = at + 1 < length and header(at + 1, 1):uint() or 0
            if size < 2 or at + size > length then
                return {}
            end
            if kind == KIND and size == LENGTH then
                found[header(at + 2, 2):uint()] = header(at, size)
            end
            at = at + size
        end
    end
    return found
end

local function show_bits(root, header, bits)
    local where = header(12, 2)
    local tree = root:add(airtcp, where, "Transit marks of base stations")
    tree:add(field.ob, where, bits >= 0x800):append_text(" (0x800)")
    tree:add(field.db, where, bits % 0x800 >= 0x400):append_text(" (0x400)")
    return tree
end

local function show_syn(root, header, bits)
    local announcement = ANNOUNCED[bits]
    local text = ("data of the receiver of this SYN takes the path %s, and its ACKs carry %s"):format(announcement.path, announcement.carry)
    show_bits(root, header, bits):add(field.meaning, header(12, 2), text):set_generated()
end

local function show_ack(root, header, bits, announcement)
    local tree, where = show_bits(root, header, bits), header(12, 2)
    local text = "unknown: the capture has no SYN that announced a station"
    if announcement then
        local cause = CAUSE[announcement.path][bits]
        text = ("%s: if the requested byte was lost, the cause was %s"):format(announcement.path, cause)
        tree:add(field.cause, where, cause):set_generated()
    end
    tree:add(field.meaning, where, text):set_generated()
end

local function show_reports(root, header, length)
    local found = reports(header, length)
    local rate, count = found[LOSS_RATE], found[REORDERED]
    if rate then
        local per_cent = rate(4, 2):uint() * 100 / 65536
        local tree = root:add(airtcp, rate, ("Loss-rate report: %.3f %%"):format(per_cent))
        tree:add(field.loss_rate, rate(4, 2), per_cent)
    end
    if count then
        local tree = root:add(airtcp, count, ("Reordering alarm: %u"):format(count(4, 2):uint()))
        tree:add(field.reordered, count(4, 2))
    end
end

-- Shows one TCP header, whose end may be missing in the capture.
local function show(root, pinfo, header, stream)
    if header:len() < 16 then
        return
    end
    local flags = header(12, 2):bitfield(4, 12)
    local bits = flags - flags % 0x400
    local is = function(flag) return flags % (2 * flag) >= flag end
    local syn, rst, ack = is(0x002), is(0x004), is(0x010)
    local from = ("%s %s %u"):format(stream, pinfo.src, header(0, 2):uint())
    if syn and not pinfo.visited then
        announced[from] = ANNOUNCED[bits]
    end
    if syn and bits > 0 then
        show_syn(root, header, bits)
    elseif rst then
        if bits > 0 then
            show_bits(root, header, bits)
        end
    elseif not syn and (bits > 0 or ack and announced[from]) then
        show_ack(root, header, bits, announced[from])
    end
    local length = header(12, 1):bitfield(0, 4) * 4
    if length > 20 and length <= header:len() then
        show_reports(root, header, length)
    end
end

-- Returns whether this header is part of an ICMP error. Such a header repeats a packet that was sent before.
local function is_quoted(tcp)
    for _, extractor in ipairs(quoting) do
        local icmp = extractor()
        if icmp and icmp.offset < tcp.offset then
            return true
        end
    end
    return false
end

function airtcp.dissector(_, pinfo, root)
    local streams = { tcp_stream() }
    for number, tcp in ipairs({ tcp_header() }) do
        if not is_quoted(tcp) then
            show(root, pinfo, tcp.range, streams[number] and streams[number].value or "?")
        end
    end
end

register_postdissector(airtcp)

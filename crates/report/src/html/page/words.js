// Formats numbers for readers.

export function duration(micros) {
  const size = Math.abs(micros);
  if (size >= 1e6) return `${(micros / 1e6).toFixed(3)} s`;
  if (size >= 1e3) return `${(micros / 1e3).toFixed(size >= 1e5 ? 0 : 1)} ms`;
  return `${micros.toFixed(0)} µs`;
}

export function seconds(micros, digits = 6) { return `${(micros / 1e6).toFixed(digits)} s`; }

export function si(value, unit) {
  if (value === 0) return `0 ${unit}`;
  const steps = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''], [1e-3, 'm'], [1e-6, 'µ']];
  const [size, prefix] = steps.find(([size]) => Math.abs(value) >= size * 0.99999) ?? [1, ''];
  return `${Number((value / size).toPrecision(4))} ${prefix}${unit}`;
}

export function octets(value) { return si(value, 'B'); }

// Formats an amount of data: as a number of segments of `mss` bytes if a page gives their size, otherwise in
// bytes.
export function amount(value, mss) { return mss ? String(Math.round((10 * value) / mss) / 10) : octets(value); }

// Returns the number of the segment that contains this position. The SYN is 0, and the first data is 1.
export function segmentAt(position, mss) { return Math.floor((position - 1) / mss) + 1; }

/** Bytes in the binary unit that fits: `512 B`, `1.5 KiB`, `37.2 MiB`. */
export const formatBytes = (bytes: number): string => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
};

/** Seconds as `8 s`, `1 min 05 s`, `2 h 07 min`. */
export const formatDuration = (seconds: number): string => {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value: number): string => String(value).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
};

/** A loss scale, in full for powers of two (nearly always), so that 65536 is easy to recognise. */
export const formatScale = (scale: number): string =>
  Number.isInteger(scale) ? scale.toLocaleString("en-US") : scale.toPrecision(4);

/** Three significant digits at least, no exponent for everyday numbers. */
export const formatNumber = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);

const significant = (value: number, digits: number): string =>
  value === 0 ? "0" : `${Number(value.toPrecision(digits))}`;

/** Three digits: "1.23 ms", "45.6 µs". */
export const formatMilliseconds = (milliseconds: number): string =>
  milliseconds >= 1000
    ? `${significant(milliseconds / 1000, 3)} s`
    : milliseconds >= 0.1
      ? `${significant(milliseconds, 3)} ms`
      : `${significant(milliseconds * 1000, 3)} µs`;

/** With the prefix of its unit: "48.2 G" of FLOP/s. */
export function formatRate(perSecond: number): string {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  const power = Math.min(5, Math.max(0, Math.floor(Math.log10(perSecond) / 3)));
  return `${significant(perSecond / 1000 ** power, 3)} ${prefixes[power]}`;
}

export const formatTimes = (ratio: number): string => `${significant(ratio, ratio < 10 ? 2 : 3)}×`;

export const formatPercent = (share: number): string =>
  `${significant(100 * share, share < 0.1 ? 2 : 3)} %`;

export const formatBytes = (bytes: number): string =>
  bytes < 2 ** 20
    ? `${significant(bytes / 2 ** 10, 3)} KiB`
    : `${significant(bytes / 2 ** 20, 3)} MiB`;

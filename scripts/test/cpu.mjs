import { readFileSync } from "node:fs";

// What a test run costs, in a measure that does not follow the speed of the host.

// The kernel's unit for all programs, whatever its own clock is.
const ticksPerSecond = 100;

/**
 * CPU seconds of a process's children that ended, and of theirs, from its line in /proc.
 * @param {string} stat content of /proc/PID/stat
 */
export const readChildSeconds = (stat) => {
  // The name of the program is in parentheses and may have any characters.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond;
};

/** CPU seconds of the children of this process that ended; undefined where the system keeps no such count. */
export const childSeconds = () =>
  process.platform === "linux"
    ? readChildSeconds(readFileSync("/proc/self/stat", "utf8"))
    : undefined;

/**
 * Does fixed work of the kinds that tests do, and measures it. On the machine that the budget of CONTRIBUTING.md was set on it takes 1.0 to
 * 1.6 CPU seconds.
 * @returns {number} CPU seconds
 */
export const calibrate = () => {
  const before = process.cpuUsage();
  products(192, 12);
  const text = sortedRecords(60_000, 6);
  const { user, system } = process.cpuUsage(before);
  if (text === "") throw new Error("the calibration did no work");
  return (user + system) / 1e6;
};

/** Products of float32 matrices, as references on the CPU compute them. */
function products(size, rounds) {
  const [a, b, out] = [0, 1, 2].map((start) =>
    Float32Array.from({ length: size * size }, (_, i) => ((i + start) % 17) / 16),
  );
  for (let round = 0; round < rounds; round++)
    for (let i = 0; i < size; i++)
      for (let j = 0; j < size; j++) {
        let sum = 0;
        for (let k = 0; k < size; k++) sum = Math.fround(sum + a[i * size + k] * b[k * size + j]);
        out[i * size + j] = sum;
      }
  return out;
}

/** Objects, maps and strings, as recordings and compilers make them. */
function sortedRecords(count, rounds) {
  let text = "";
  for (let round = 0; round < rounds; round++) {
    const byName = new Map();
    for (let i = 0; i < count; i++) byName.set(`value ${(i * 7919) % count}`, { i, round });
    const records = [...byName].sort(([x], [y]) => (x < y ? -1 : 1));
    text = records.map(([name, { i }]) => `${name} ${i}`).join("\n");
  }
  return text;
}

/**
 * The line about CPU time; undefined where it was not measured.
 * @param {number | undefined} seconds
 * @param {readonly number[]} calibrations CPU seconds of the fixed work, before and after
 */
export const cpuLine = (seconds, calibrations) => {
  if (seconds === undefined) return undefined;
  const calibration = calibrations.reduce((sum, x) => sum + x, 0) / calibrations.length;
  const ratio = Math.round(seconds / calibration);
  return `CPU time: ${seconds.toFixed(0)} s, ${ratio} times that of the fixed work (${calibrations.map((x) => x.toFixed(2)).join(" and ")} s)`;
};

import { readFileSync } from "node:fs";

// What a test run costs, however many other programs share its cores.

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
 * The line about CPU time; undefined where it was not measured.
 * @param {number | undefined} seconds
 */
export const cpuLine = (seconds) =>
  seconds === undefined
    ? undefined
    : `CPU time: ${seconds.toFixed(0)} s (${(seconds / 60).toFixed(1)} minutes)`;

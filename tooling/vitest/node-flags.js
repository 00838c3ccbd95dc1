const isNode20 = process.versions.node.startsWith("20.");

/**
 * Flags of Node for the processes of tests: functions are optimized once they have run for six times as long as usual. Node 20 spends
 * a fifth of the CPU time of short programs on optimizing what they do not run again. Later versions spend less, and lack the flag.
 * @type {readonly string[]}
 */
export const nodeFlags = isNode20 ? ["--interrupt-budget=400000"] : [];

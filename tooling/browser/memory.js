import { readFileSync } from "node:fs";

// Code that is compiled when it turned out to be hot would count as memory of the page.
export const memoryFlags = [
  "--js-flags=--expose-gc --no-opt --no-maglev --no-sparkplug",
  "--enable-blink-features=ForceEagerMeasureMemory",
];

export const memoryOf = async ({ gpuProcess }, page) => {
  for (const place of [page, ...page.workers()]) await place.evaluate("gc()");
  const { breakdown } = await page.evaluate("performance.measureUserAgentSpecificMemory()");
  const bytesOf = (isMeant) =>
    breakdown.filter(isMeant).reduce((total, { bytes }) => total + bytes, 0);
  const scopeOf = ({ attribution }) => attribution[0]?.scope;
  return {
    "heap of the page": bytesOf((part) => scopeOf(part) === "Window"),
    "heap of workers": bytesOf((part) => scopeOf(part) === "DedicatedWorkerGlobalScope"),
    DOM: bytesOf(({ types }) => types.includes("DOM")),
    "GPU process": anonymousBytesOf(await gpuProcess()),
  };
};

/** What a process has allocated, without the files that it maps. */
function anonymousBytesOf(id) {
  const [, kilobytes] = /^Anonymous:\s+(\d+) kB$/m.exec(
    readFileSync(`/proc/${id}/smaps_rollup`, "utf8"),
  );
  return 1024 * Number(kilobytes);
}

/** Growth that is none: a share of what is held, and at least so many bytes. */
const smallShare = 0.01;
const smallBytes = 64 * 1024;

export const growthOf = (samples) => {
  const third = Math.floor(samples.length / 3);
  const leastOf = (part) => Math.min(...part);
  const held = leastOf(samples.slice(third, 2 * third));
  const grown = leastOf(samples.slice(-third)) - held;
  return { held, grown, isLeak: grown > Math.max(smallBytes, smallShare * held) };
};

export const watchMemory = async ({ minutes, sample }) => {
  const end = performance.now() + minutes * 60_000;
  const samples = new Map();
  while (performance.now() < end) {
    for (const [name, bytes] of Object.entries(await sample())) {
      if (!samples.has(name)) samples.set(name, []);
      samples.get(name).push(bytes);
    }
  }
  return Object.fromEntries([...samples].map(([name, each]) => [name, growthOf(each)]));
};

export const growthText = ({ held, grown, isLeak }) => {
  const text = (bytes) => `${Math.round(bytes / 1024).toLocaleString("en-US")} KiB`;
  return `${text(held)}, and later ${text(grown)} more${isLeak ? ": a leak" : ""}`;
};

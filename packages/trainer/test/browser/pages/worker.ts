import { jobs } from "./jobs.js";

self.onmessage = async ({ data: { name, given } }: MessageEvent) => {
  try {
    const job = jobs[name as keyof typeof jobs] as (...given: readonly unknown[]) => unknown;
    self.postMessage({ result: await job(...given) });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};

import { jobs } from "./jobs.js";

// Jobs in this page, or in a worker of it.

type Answer = { readonly result: unknown } | { readonly error: string };

const inWorker = (name: string, given: readonly unknown[]): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const worker = new Worker("worker.js", { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      worker.terminate();
      if ("error" in data) reject(new Error(data.error));
      else resolve(data.result);
    };
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage({ name, given });
  });

const inPage = async (name: string, given: readonly unknown[]): Promise<unknown> =>
  (jobs[name as keyof typeof jobs] as (...given: readonly unknown[]) => unknown)(...given);

Object.assign(globalThis, { inPage, inWorker });

// The thread of a tracker at Weights & Biases: it alone loads their package.
import { parentPort, workerData } from "node:worker_threads";
import wandb from "@wandb/sdk";
import type { WandbAnswer, WandbRequest, WandbThreadSetting } from "./wandb.js";

const port = parentPort;
if (port) await serve((answer) => port.postMessage(answer));

async function serve(post: (answer: WandbAnswer) => void): Promise<void> {
  // Deno drops what arrives before there is a listener.
  const waiting: WandbRequest[] = [];
  let answer = (request: WandbRequest): void => void waiting.push(request);
  port?.on("message", (request: WandbRequest) => answer(request));
  post({ kind: "loaded" });
  const { project, entity, name, config } = workerData as WandbThreadSetting;
  try {
    const run = await wandb.init({
      project,
      ...(entity !== undefined && { entity }),
      name,
      config,
    });
    run.settings.silent = true;
    post({ kind: "begun", url: run.url() });
    answer = (request) => {
      if (request.kind === "log") run.log({ ...request.scalars }, request.step);
      else run.finish(request.exitCode).then(() => post({ kind: "finished" }), failed);
    };
    for (const request of waiting) answer(request);
  } catch (error) {
    failed(error);
  }

  function failed(error: unknown): void {
    post({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });
  }
}

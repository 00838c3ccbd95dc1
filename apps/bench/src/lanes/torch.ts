import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { type Module, torchStateDict } from "@halfstep/nn";
import { type SafetensorsTensor, writeSafetensors } from "@halfstep/safetensors";
import { cpuRuntime, type Runtime } from "@halfstep/tensor";
import { comparedSteps } from "./halfstep.js";
import type { Precision, Prepared } from "./prepared.js";

/** Values of a tensor for PyTorch. */
interface Values {
  readonly data: Float32Array | Uint32Array;
  readonly shape: readonly number[];
}

/** A model that `torch_lane.py` also has, with its training data. */
export interface TorchModel {
  readonly name: "mlp" | "digits" | "resnet" | "gpt" | "bert";
  readonly options?: Readonly<Record<string, number>>;
  /** The model here: PyTorch starts from its parameters. */
  make(runtime: Runtime): Module;
  readonly input: Values;
  readonly labels: Uint32Array;
  readonly precision: Precision;
  readonly lr: number;
}

/** PyTorch in its own process, for comparison with torch.amp on machines that have it. */
export interface TorchLibrary {
  training(model: TorchModel): Promise<Prepared>;
  product(a: Values, b: Values, precision: Precision): Promise<Prepared>;
}

interface Ran {
  readonly hostSeconds: number;
  readonly peakBytes: number;
}

/** The Python whose PyTorch is compared: the named one, or `python3` if its PyTorch has a GPU. */
export async function findTorch(named: string | undefined): Promise<string | undefined> {
  const wanted = named === undefined ? "assert torch.cuda.is_available()" : "pass";
  const python = named ?? "python3";
  try {
    await promisify(execFile)(python, ["-c", `import torch; ${wanted}`], { timeout: 120_000 });
    return python;
  } catch (error) {
    if (named === undefined) return undefined;
    const reason = `${(error as { stderr?: string }).stderr ?? ""}`.trim().split("\n").at(-1);
    throw new Error(`--python ${named}: it has no PyTorch (${reason || (error as Error).message})`);
  }
}

export async function openTorch(
  python: string,
  peersFolder: string,
): Promise<{ readonly version: string; readonly library: TorchLibrary }> {
  const talk = new Conversation(
    spawn(python, [join(peersFolder, "torch_lane.py")], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  const { version } = await talk.hear<{ version: string }>();
  return {
    version,
    library: {
      async training({ name, options = {}, make, input, labels, precision, lr }) {
        const state = await torchStateDict(make(cpuRuntime()));
        const tensors = { ...state, input, labels: { data: labels, shape: [labels.length] } };
        return prepared(talk, tensors, { kind: "training", model: name, options, precision, lr });
      },
      product: (a, b, precision) => prepared(talk, { a, b }, { kind: "product", precision }),
    },
  };
}

const stored = ({ data, shape }: Values): SafetensorsTensor =>
  data instanceof Float32Array ? { dtype: "F32", shape, data } : { dtype: "U32", shape, data };

async function prepared(
  talk: Conversation,
  tensors: Readonly<Record<string, Values>>,
  about: object,
): Promise<Prepared> {
  const folder = mkdtempSync(join(tmpdir(), "halfstep-torch-"));
  try {
    const file = join(folder, "tensors.safetensors");
    const named = Object.entries(tensors).map(([name, values]) => [name, stored(values)] as const);
    writeFileSync(file, writeSafetensors(Object.fromEntries(named)));
    const { task } = await talk.ask<{ task: number }>({ do: "prepare", ...about, tensors: file });
    return preparedTask(talk, task);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function preparedTask(talk: Conversation, task: number): Prepared {
  let pending = 0;
  let peakBytes = 0;
  return {
    // One request covers all steps of a repetition; a request for each step would add to the measured time.
    run() {
      pending++;
    },
    async drain() {
      const count = pending;
      pending = 0;
      const ran = await talk.ask<Ran>({ do: "run", task, count });
      peakBytes = Math.max(peakBytes, ran.peakBytes);
    },
    async result() {
      const folder = mkdtempSync(join(tmpdir(), "halfstep-torch-"));
      try {
        const file = join(folder, "result");
        await talk.ask({ do: "result", task, steps: comparedSteps, file });
        return new Float32Array(new Uint8Array(readFileSync(file)).buffer);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    facts: () => ({ allocatorPeakBytes: peakBytes }),
  };
}

/** Requests and answers in turns, a line each. */
class Conversation {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(child: ChildProcess) {
    this.#child = child;
    const { stdout } = child;
    if (!stdout) throw new Error("the process of PyTorch has no output");
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
    // The reason of its end is on stderr.
    child.on("error", () => {});
    child.stdin?.on("error", () => {});
  }

  ask<T>(request: object): Promise<T> {
    this.#child.stdin?.write(`${JSON.stringify(request)}\n`);
    return this.hear();
  }

  async hear<T>(): Promise<T> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the process of PyTorch ended");
    const answer = JSON.parse(value) as T & { readonly error?: string };
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  }
}

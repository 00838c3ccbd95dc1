import { type ChildProcess, fork } from "node:child_process";
import type { Made, Opened, Request, Subject, Timed, WarmedUp } from "./lane-process.js";
import { type LaneName, ours } from "./lanes/names.js";

/** The parent's side of a lane: sends requests, and rejects them when the process dies. */
export class LaneClient {
  readonly lane: LaneName;
  readonly #child: ChildProcess;
  readonly #patience: number;
  readonly #waiting: Map<
    number,
    { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void }
  > = new Map();
  #requests = 0;
  #end: Error | undefined;
  /** The last lines on the process's stderr, for the message when it dies. */
  #complaint = "";

  /** Requests that take more than `patience` milliseconds end the process. */
  constructor(lane: LaneName, program: string, patience: number) {
    this.lane = lane;
    this.#patience = patience;
    this.#child = fork(lane.program ?? program, ["lane"], {
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.stderr?.on("data", (chunk) => {
      this.#complaint = `${this.#complaint}${chunk}`.slice(-2000);
    });
    this.#child.on("message", (message) => {
      const { id, value, error } = message as { id: number; value?: unknown; error?: string };
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(error));
    });
    this.#child.on("exit", (code, signal) => this.#die(signal ?? `exit status ${code}`));
    this.#child.on("error", (error) => this.#die(error.message));
  }

  get name(): string {
    return this.lane.name;
  }

  open(peersFolder: string): Promise<Opened> {
    const name = this.lane.program === undefined ? this.name : ours.name;
    return this.#ask({ kind: "open", lane: name, peersFolder });
  }
  prepare(subject: Subject): Promise<Made> {
    return this.#ask({ kind: "prepare", subject });
  }
  warmUp(subject: Subject, isBrief: boolean): Promise<WarmedUp> {
    return this.#ask({ kind: "warmUp", subject, isBrief });
  }
  time(subject: Subject, calls: number): Promise<Timed> {
    return this.#ask({ kind: "time", subject, calls });
  }

  /** Ends the process, after two seconds even without an answer. */
  async close(): Promise<void> {
    if (this.#end) return;
    await Promise.race([this.#ask({ kind: "close" }), later(2000)]).catch(() => {});
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await gone;
  }

  #ask<T>(request: Request): Promise<T> {
    if (this.#end) return Promise.reject(this.#end);
    this.#signal("SIGCONT");
    const id = ++this.#requests;
    const answer = new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#child.send({ id, request });
    });
    const timer = setTimeout(() => {
      this.#die(`no answer in ${this.#patience / 1000} s`);
      this.#child.kill("SIGKILL");
    }, this.#patience);
    return answer.finally(() => {
      clearTimeout(timer);
      if (this.#waiting.size === 0) this.#signal("SIGSTOP");
    });
  }

  /** Libraries that poll or spin while they have nothing to do would take the processor from the one that is measured. */
  #signal(signal: "SIGSTOP" | "SIGCONT"): void {
    if (process.platform !== "win32" && !this.#end) this.#child.kill(signal);
  }

  #die(reason: string): void {
    if (this.#end) return;
    const complaint = this.#complaint.trim().split("\n").at(-1);
    this.#end = new Error(`its process ended (${reason})${complaint ? `: ${complaint}` : ""}`);
    for (const { reject } of this.#waiting.values()) reject(this.#end);
    this.#waiting.clear();
  }
}

const later = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds).unref());

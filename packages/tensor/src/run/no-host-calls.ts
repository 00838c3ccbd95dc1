import { LeftOutError } from "@halfstep/device";
import type * as calls from "./host-calls.js";

// Stands for `host-calls.ts` in builds with the condition `@halfstep/inference-only`: programs that only infer exchange nothing.

/** No calls: only the errors of work that waited for programs. */
export class HostCalls implements Pick<calls.HostCalls, keyof calls.HostCalls> {
  failure: Error | undefined;
  readonly isBusy = false;

  async ended(): Promise<void> {}

  fail(reason: unknown): void {
    this.failure ??= reason instanceof Error ? reason : new Error(String(reason));
  }

  open(): never {
    throw new LeftOutError("@halfstep/inference-only", "host ops");
  }
}

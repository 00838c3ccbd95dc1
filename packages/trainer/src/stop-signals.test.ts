import { afterEach, expect, it, vi } from "vitest";
import { isStopAwaited, type StopSignals, stopSignals } from "./stop-signals.js";

let stop: StopSignals | undefined;
afterEach(() => stop?.dispose());

it.each([
  ["SIGHUP", 129],
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("%s lets the program end in order, with %i", (signal, code) => {
  stop = stopSignals();
  expect([stop.signal.aborted, stop.exitCode()]).toEqual([false, undefined]);
  process.emit(signal);
  expect([stop.signal.aborted, stop.exitCode()]).toEqual([true, code]);
});

it.each(["stdout", "stderr"] as const)(
  "so does a reader of %s that goes away, however often it is missed",
  (name) => {
    const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
    stop = stopSignals({ echo: -1 });
    const closed = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
    for (let i = 0; i < 3; i++) process[name].emit("error", closed);
    expect([stop.signal.aborted, stop.exitCode()]).toEqual([true, 141]);
    expect(exit).not.toHaveBeenCalled();
    expect(() => process[name].emit("error", new Error("other"))).toThrow("other");
    exit.mockRestore();
  },
);

it("listens until it is disposed of", () => {
  const before = process.stdout.listenerCount("error");
  stop = stopSignals();
  expect(isStopAwaited()).toBe(true);
  stop.dispose();
  stop.dispose();
  expect(isStopAwaited()).toBe(false);
  expect(process.stdout.listenerCount("error")).toBe(before);
});

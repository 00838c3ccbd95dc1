import { expect, test } from "vitest";
import { SubmissionQueue } from "./submission-queue.js";

/** A queue, what was called, and promises that the test settles. */
function opened() {
  const called: string[] = [];
  const failures: unknown[] = [];
  const queue = new SubmissionQueue((error) => failures.push(error));
  const call = (name: string) => (): unknown => called.push(name);
  const programs = () => {
    let compiled = (): void => {};
    let refused = (_reason: unknown): void => {};
    const ready = new Promise<void>((resolve, reject) => {
      compiled = resolve;
      refused = reject;
    });
    return { ready, compiled, refused };
  };
  const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
  return { queue, called, failures, call, programs, turn };
}

test("work is called at once where nothing waits", () => {
  const { queue, called, call } = opened();
  queue.add(call("first"));
  queue.add(call("second"));
  expect(called).toEqual(["first", "second"]);
  expect(queue.isHeld).toBe(false);
});

test("work that waits holds back what follows, and nothing overtakes", async () => {
  const { queue, called, call, programs, turn } = opened();
  const [one, other] = [programs(), programs()];
  queue.add(call("before"));
  queue.add(call("run"), one.ready);
  queue.add(call("write"));
  queue.add(call("next run"), other.ready);
  const read = queue.result(async () => `read after ${called.at(-1)}`);
  expect(queue.isHeld).toBe(true);
  other.compiled();
  await turn();
  expect(called).toEqual(["before"]);
  one.compiled();
  expect(await read).toBe("read after next run");
  expect(called).toEqual(["before", "run", "write", "next run"]);
  expect(queue.isHeld).toBe(false);
});

test("work given by work belongs to its place", async () => {
  const { queue, called, call, programs } = opened();
  const { ready, compiled } = programs();
  queue.add(() => {
    queue.add(call("its submit"));
    call("its end")();
  }, ready);
  queue.add(call("later"));
  compiled();
  await queue.called();
  expect(called).toEqual(["its submit", "its end", "later"]);
});

test("work whose programs are refused is dropped, and the rest is called", async () => {
  const { queue, called, failures, call, programs } = opened();
  const { ready, refused } = programs();
  queue.add(call("run"), ready);
  queue.add(() => {
    throw new Error("broken");
  });
  queue.add(call("later"));
  refused("no WGSL");
  await queue.called();
  expect(called).toEqual(["later"]);
  expect(failures.map(String)).toEqual(["no WGSL", "Error: broken"]);
});

test("a released queue waits no longer", async () => {
  const { queue, called, call, programs, turn } = opened();
  const { ready, compiled } = programs();
  queue.add(call("run"), ready);
  queue.add(call("later"));
  queue.release();
  expect(called).toEqual(["later"]);
  compiled();
  await turn();
  expect(called).toEqual(["later"]);
});

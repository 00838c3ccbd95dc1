import { setImmediate } from "node:timers";
import { philox4x32 } from "@halfstep/formats/philox";
import type { Network } from "./network.js";

/** Options of a simulated network. */
export interface SimulationOptions {
  /** A non-negative safe integer: the same seed gives the same run. */
  readonly seed: number;
  /** The longest delay of a message, in virtual milliseconds. Default 10. */
  readonly delay?: number;
  /** The share of messages that are lost. Default 0. */
  readonly loss?: number;
}

/** Turns of the event loop in which ranks may compute before a deadline passes. */
const patience = 100;

interface Event {
  readonly time: number;
  readonly isDeadline: boolean;
  readonly act: () => void;
}

/**
 * A network with a virtual clock. Each message has a random delay, so that messages overtake each other, or is lost. The clock advances
 * when all ranks wait: a deadline passes only where nothing has been sent for many turns of the event loop, in which ranks may compute.
 */
export function simulatedNetwork({ seed, delay = 10, loss = 0 }: SimulationOptions): Network {
  let now = 0;
  let drawn = 0;
  let isRunning = false;
  const events = new Set<Event>();
  const random = (): number =>
    (philox4x32([drawn++, 0, 0, 0], [seed >>> 0, Math.floor(seed / 2 ** 32)])[0] as number) /
    2 ** 32;

  const advance = (turn = 0): void => {
    let next: Event | undefined;
    for (const event of events) if (!next || event.time < next.time) next = event;
    isRunning = next !== undefined;
    if (!next) return;
    if (next.isDeadline && turn < patience) {
      setImmediate(advance, turn + 1);
      return;
    }
    events.delete(next);
    now = next.time;
    next.act();
    // The microtasks of the ranks run first.
    setImmediate(advance);
  };
  const schedule = (milliseconds: number, act: () => void, isDeadline: boolean): (() => void) => {
    const event = { time: now + milliseconds, act, isDeadline };
    events.add(event);
    if (!isRunning) {
      isRunning = true;
      setImmediate(advance);
    }
    return () => events.delete(event);
  };
  return {
    after: (milliseconds, act) => schedule(milliseconds, act, true),
    send(message, deliver) {
      const isLost = random() < loss;
      const time = random() * delay;
      if (!isLost) schedule(time, () => deliver(message), false);
    },
  };
}

/** Ways of hosts to call a function in a later turn of the event loop. */
interface Host {
  /** Node's. */
  readonly setImmediate?: (call: () => void) => unknown;
  /** Browsers', which draws and handles input in between. */
  readonly scheduler?: { yield?(): Promise<void> };
}

/** Waits for one turn of the event loop, so that signals, timers and input are handled between steps. */
export function macrotask(host: Host = globalThis as Host): Promise<void> {
  const { setImmediate: soon, scheduler } = host;
  if (soon) return new Promise((resolve) => soon(resolve));
  if (scheduler?.yield) return scheduler.yield();
  return messageTask();
}

/** Timers of hidden pages run once a second; messages are not held back. */
function messageTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

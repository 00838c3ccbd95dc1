/**
 * Lets messages in that arrived meanwhile. `scheduler.yield` would come back before them, and timers of hidden pages run once a second.
 */
export function messageTurn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

import type { Binding, LaunchTarget } from "@halfstep/device";
import { gradientFlag } from "../src/observers/gradient-flag.js";
import { canObserveStores, observingStores } from "../src/observers/observing-stores.js";
import type { StoreObserver } from "../src/observers/store-observer.js";
import { canStoreTwice, storingTwice } from "../src/twin.js";

/** The observer that sets a flag of gradients. */
export const flagging = <B>(
  words: Binding<B>,
): { readonly observer: StoreObserver; readonly words: Binding<B> } => ({
  observer: gradientFlag,
  words,
});

/** The same target, on which launches that write `out` also set `foundInf`, and store twice if there is a `twin`. */
export const checking = <B>(
  target: LaunchTarget<B>,
  { out, foundInf, twin }: Readonly<Record<"out" | "foundInf", Binding<B>>> & { twin?: Binding<B> },
): LaunchTarget<B> => ({
  allocate: (bytes) => target.allocate(bytes),
  launch(launch) {
    const result = launch.bindings.findIndex(({ buffer }) => buffer === out.buffer);
    if (result < 0) return target.launch(launch);
    let { kernel } = launch;
    let stored = launch;
    if (twin && canStoreTwice(kernel)) stored = storingTwice({ ...launch, kernel }, result, twin);
    kernel = stored.kernel;
    if (!canObserveStores(kernel)) throw new TypeError(`${kernel.name} cannot check`);
    target.launch(observingStores({ ...stored, kernel }, [result], flagging(foundInf)));
  },
});

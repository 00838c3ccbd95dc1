// `npm run test:browser [-- LANE…]`: training in a headless Chromium, compared with Node on the same software driver. A Chromium is
// installed where there is none and the machine allows it. It ends as `npm run lanes` does. `npm run test:browser:full` builds the packages,
// and also bundles them as programs of others do.
import { runLanes } from "./lanes/run-lanes.mjs";
import { browserLanes, fullBrowserLanes } from "./lanes/table.mjs";

const chosen = process.argv.slice(2);
const isFull = chosen.includes("--full");
await runLanes(
  isFull ? fullBrowserLanes : browserLanes,
  chosen.filter((name) => name !== "--full"),
);

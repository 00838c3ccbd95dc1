// `npm run test:browser [-- LANE…]`: training in a headless Chromium, compared with Node on the same software driver. A Chromium is
// installed where there is none and the machine allows it. It ends as `npm run lanes` does.
import { runLanes } from "./lanes/run-lanes.mjs";
import { browserLanes } from "./lanes/table.mjs";

await runLanes(browserLanes, process.argv.slice(2));

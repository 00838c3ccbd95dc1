export { bundlePage } from "./bundle.js";
export { whyNoLavapipe } from "./lavapipe.js";
export { tracePageTasks } from "./main-thread.js";
export { growthOf, growthText, memoryFlags, memoryOf, watchMemory } from "./memory.js";
export { openBrowser } from "./open-browser.js";
export { openFirefox } from "./open-firefox.js";
export { openPage } from "./open-page.js";
export { servePages, strictPolicy } from "./serve-pages.js";

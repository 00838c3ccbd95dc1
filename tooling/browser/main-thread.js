/** A mark by which the page's thread is found among those of other pages. */
const mark = "a thread of interest";

export const tracePageTasks = async (page, use) => {
  const browser = page.context().browser();
  await browser.startTracing(undefined, { categories: ["toplevel", "blink.user_timing"] });
  await page.evaluate((name) => performance.mark(name), mark);
  await use();
  const { traceEvents } = JSON.parse(String(await browser.stopTracing()));
  const { pid, tid } = traceEvents.find(({ name }) => name === mark);
  return traceEvents
    .filter((event) => event.name === "ThreadControllerImpl::RunTask")
    .filter((event) => event.pid === pid && event.tid === tid)
    .map(({ dur, tdur = 0 }) => ({ milliseconds: dur / 1000, computed: tdur / 1000 }));
};

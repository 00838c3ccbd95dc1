export const openPage = async (browser, url) => {
  const page = await browser.newPage();
  const messages = [];
  page.on("console", (message) => messages.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => messages.push(`error: ${error.message}`));
  page.on("crash", () => messages.push("the page crashed"));
  // Software drivers compile for minutes; the test that opens the page has a limit.
  page.setDefaultTimeout(0);
  await page.goto(url);
  return { page, messages };
};

"use strict";
// Copying a console gives its commands, without prompts and output.
document.addEventListener("click", (event) => {
  const copy = event.target.closest(".language-console [data-clipboard-target]");
  if (!copy) return;
  const lines = document.querySelector(copy.dataset.clipboardTarget).innerText.split("\n");
  copy.dataset.clipboardText = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2)).join("\n");
}, true);

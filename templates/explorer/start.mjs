import { mount } from "./app.mjs";

mount(document.getElementById("explorer"), JSON.parse(document.getElementById("explorer-facts").textContent));

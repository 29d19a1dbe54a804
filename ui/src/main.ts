import { mount } from "svelte";
import "./app.css";
import App from "./App.svelte";
import { startRouter } from "./router.svelte";
import { startTheme } from "./theme.svelte";

startTheme();
startRouter();
mount(App, { target: document.getElementById("app")! });

"use strict";
(() => {
	// What lies under the pointer, in words below the picture.
	const spans = document.body.dataset.spans.trim().split(" ").map(Number);
	let all = 0;
	for (let i = 1; i < spans.length; i += 2) all += spans[i];
	const clock = part => {
		let at = part * all, i = 0;
		while (i + 2 < spans.length && at > spans[i + 1]) { at -= spans[i + 1]; i += 2; }
		return new Date(spans[i] + at).toISOString().slice(11, 23);
	};
	const numbers = text => (text || "").replace(/[[\]]/g, "").split(" ").map(Number);
	for (const svg of document.querySelectorAll(".plot svg")) {
		const most = numbers(svg.dataset.a), mean = svg.dataset.b && numbers(svg.dataset.b), paused = numbers(svg.dataset.p);
		const out = svg.closest("figure").querySelector("output");
		svg.addEventListener("pointermove", e => {
			const box = svg.getBoundingClientRect();
			const at = Math.min(Math.max((e.clientX - box.left) / box.width, 0), 0.9999);
			const bin = Math.floor(at * most.length);
			const text = mean ? most[bin] + " under way at most, " + mean[bin] / 100 + " on average" : most[bin] + " tokens";
			out.textContent = clock(at) + ": " + text + ["", "; paused for some", "; paused"][paused[Math.floor(at * paused.length)] || 0];
		});
		svg.addEventListener("pointerleave", () => { out.textContent = ""; });
	}
	// The table of jobs, cut down to what is looked for.
	const find = document.getElementById("find");
	if (!find) return;
	const status = document.getElementById("status"), found = document.getElementById("found");
	const rows = [...document.querySelectorAll("#jobs tbody tr")];
	const texts = rows.map(row => [...row.cells].map(cell => cell.textContent).join(" ").toLowerCase());
	const states = rows.map(row => row.cells[1].textContent);
	const show = () => {
		const words = find.value.toLowerCase().split(/\s+/);
		let n = 0;
		rows.forEach((row, i) => {
			row.hidden = status.value && states[i] !== status.value || !words.every(word => texts[i].includes(word));
			if (!row.hidden) n++;
		});
		found.textContent = n + " of " + rows.length + " jobs";
	};
	find.addEventListener("input", show);
	status.addEventListener("change", show);
	document.querySelector(".filter").hidden = false;
	show();
})();

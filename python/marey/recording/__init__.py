"""``marey.profile`` and its parts: schedules, options, steps, emitters."""
